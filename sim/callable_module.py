"""Modules that carry the name of their one function: `from sim import recommend` is the function in any order.

Importing the module `sim.recommend` puts the module in the place of the function of the same name on the package;
so the module itself can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)


def make_callable(name: str) -> None:
    """Let the module of this name be called as the function in it that bears the same name."""
    sys.modules[name].__class__ = _CallableModule
