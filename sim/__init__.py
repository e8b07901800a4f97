"""The model: scenario to events, events to ledger, ledger to advice. Imports no other room."""
