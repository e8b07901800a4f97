"""The blocks of the scenario: their fields, their rules, and how text becomes one."""
