"""The sheet that a framework's file is written from: its options with their reasons, and what must be said beside them.

A framework's module fills a sheet; sim/export/writers.py gives it a form. What a framework refuses is refused here too
(`ScenarioError`, with the path in the scenario); what it silently ignores is said, in the file and on stderr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import NoReturn

from sim.export.settings import Settings
from sim.schema.fields import Problem, ScenarioError
from sim.warn import Severity, Warning

Value = int | float | str | bool | timedelta | None


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework, and the state of it whose options were read."""

    name: str
    version: str
    """release, and the commit that was read where there is one"""
    source: str
    """files that hold its options"""

    def __str__(self) -> str:
        """Read as a name with its version."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Option:
    """One option: the section it stands in, its key, its value, and why it has that value."""

    group: str
    key: str
    value: Value
    why: str


@dataclass(slots=True)
class Sheet:
    """Everything that one file says."""

    framework: Framework
    settings: Settings
    use: str
    """how the file is handed to the framework"""
    options: list[Option] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    """what this framework refuses, ignores or does otherwise than the model"""

    def set(self, key: str, value: Value, why: str = "", group: str = "") -> None:
        """Add an option; each once."""
        assert all((option.group, option.key) != (group, key) for option in self.options), key
        self.options.append(Option(group, key, value, why))

    def value(self, key: str) -> Value:
        """Return the value of an option that has been set."""
        return next(option.value for option in self.options if option.key == key)

    def warn(self, rule: str, path: str, message: str, severity: Severity = "warning") -> None:
        """Say what a person should know of this framework; `rule` is a stable id."""
        self.warnings.append(Warning(path, message, rule, severity))

    def note(self, rule: str, path: str, message: str) -> None:
        """Say what is worth knowing."""
        self.warn(rule, path, message, "note")

    def refuse(self, path: str, message: str) -> NoReturn:
        """Refuse what this framework would refuse, or could not be told."""
        raise ScenarioError([Problem(path, message)])
