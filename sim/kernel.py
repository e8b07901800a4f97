"""The register of rules: plain Python functions that numba must be able to compile.

A rule says once what happens at a fault, a timer, a save or a free node. The SimPy driver calls rules as
plain Python; a compiled driver calls `register_overloads` first and may then call the same functions from its
compiled loop. numba is imported only inside functions: it takes a second and the plain driver never needs it.
Why it is done this way: docs/decisions/0002-one-set-of-rules-two-clocks.md.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin, get_type_hints, overload

Function = TypeVar("Function", bound=Callable[..., Any])

RULES: dict[str, Callable[..., Any]] = {}
"""Every rule, by module and name."""

_REPLACEMENTS: dict[str, Callable[[], Callable[..., Any]]] = {}
_REGISTERED: dict[str, Callable[..., Any]] = {}


@overload
def rule(function: Function) -> Function: ...
@overload
def rule(*, compiled: Callable[[], Callable[..., Any]]) -> Callable[[Function], Function]: ...
def rule(
    function: Function | None = None, *, compiled: Callable[[], Callable[..., Any]] | None = None
) -> Function | Callable[[Function], Function]:
    """Register a plain function as a rule and return it unchanged.

    Parameters
    ----------
    function
        The rule; its parameters are annotated, so that `compile_check` can compile it without being told how.
    compiled
        Makes the function that numba compiles instead of the plain one, with the same parameters. For the few
        rules whose arithmetic differs between the two, such as 64-bit unsigned integers; a test must hold the
        pair together.
    """

    def register(plain: Function) -> Function:
        name = f"{plain.__module__}.{plain.__qualname__}"
        if "<locals>" in name:
            raise ValueError(f"a rule must be defined at module level, got {name}")
        RULES[name] = plain
        if compiled is not None:
            _REPLACEMENTS[name] = compiled
        return plain

    return register if function is None else register(function)


def register_overloads() -> list[str]:
    """Teach numba every rule registered so far; names of the rules that were new to it.

    Call it before the first compiled function that uses a rule is compiled. Calling it again is harmless.
    """
    from numba.extending import overload as numba_overload

    new = [name for name, plain in RULES.items() if _REGISTERED.get(name) is not plain]
    for name in new:
        plain = RULES[name]
        implementation = _REPLACEMENTS[name]() if name in _REPLACEMENTS else plain
        # What numba.extending.register_jitable does, with the implementation free to be another function.
        numba_overload(plain, strict=False)(lambda *args, _implementation=implementation: _implementation)
        _REGISTERED[name] = plain
    return new


def as_arrays(value: Any) -> Any:
    """Return the same value for compiled code: lists, also within (named) tuples, as numpy arrays.

    A list of numbers becomes a one-dimensional array of booleans, int64 or float64, whichever holds them all; a
    list of rows of equal length a two-dimensional one. Everything else stays.
    """
    import numpy as np

    if isinstance(value, list):
        array = np.array(value)
        return array.astype(np.float64) if array.size == 0 else np.ascontiguousarray(array)
    if isinstance(value, tuple):
        items = [as_arrays(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def compile_check(
    examples: Mapping[str, Sequence[tuple[Any, ...]]] | None = None, names: Iterable[str] | None = None
) -> dict[str, str]:
    """Compile rules; the reason by rule name for those that numba refuses, so empty when all is well.

    Parameters
    ----------
    examples
        Lists of arguments by rule name. Such a rule is also run both ways on copies of each (compiled, on
        `as_arrays` of them), and result and changed arguments must agree to the last bit. Without examples the
        types come from the annotations: int, float, bool, named tuples of these, `NDArray[np.float64]` (taken as
        one-dimensional, C order) and the like. Where one is `Any` there is nothing to compile for, and only the
        opcodes are checked.
    names
        The rules to check; all by default. A rule that another one calls is compiled with it.
    """
    register_overloads()
    examples = examples or {}
    problems = {}
    for name in RULES if names is None else names:
        try:
            problem = _problem(RULES[name], examples.get(name, ()))
        except Exception as error:  # numba's errors share no narrower base; each one is reported
            problem = f"{type(error).__name__}: {error}"
        if problem:
            problems[name] = problem
    return problems


class _AnythingError(Exception):
    """A parameter may be anything, so its compiled type is only known from an example."""


def _problem(plain: Callable[..., Any], examples: Sequence[tuple[Any, ...]]) -> str:
    if examples:
        compiled = _caller(plain)
        return next(filter(None, (_differs(plain, compiled, args) for args in examples)), "")
    try:
        types = _argument_types(plain)
    except _AnythingError:
        from numba.core import compiler

        frontend: Any = compiler.run_frontend
        frontend(plain)
        return ""
    _caller(plain).compile((types,))
    return ""


def _caller(plain: Callable[..., Any]) -> Any:
    """Return a compiled function that calls the rule, as a compiled driver would."""
    import numba

    @numba.njit
    def call(args):  # type: ignore[no-untyped-def]
        return plain(*args)

    return call


def _differs(plain: Callable[..., Any], compiled: Callable[..., Any], args: tuple[Any, ...]) -> str:
    by_plain, by_numba = copy.deepcopy(args), as_arrays(copy.deepcopy(args))
    expected, got = plain(*by_plain), compiled(by_numba)
    if not _same(as_arrays(expected), got):
        return f"plain gives {expected!r}, compiled gives {got!r}"
    if not _same(as_arrays(by_plain), by_numba):
        return f"plain leaves its arguments as {by_plain!r}, compiled as {by_numba!r}"
    return ""


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if hasattr(one, "tobytes") and hasattr(other, "tobytes"):
        return bool(one.shape == other.shape and (one == other).all())
    if isinstance(one, Enum) or isinstance(other, Enum):
        return int(one) == int(other)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def _argument_types(plain: Callable[..., Any]) -> Any:
    """Return the compiled type of the tuple of a rule's arguments."""
    hints = get_type_hints(plain)
    parameters = inspect.signature(plain).parameters
    missing = [name for name in parameters if name not in hints]
    if missing:
        raise TypeError(f"parameters without a type: {', '.join(missing)}; annotate them")
    return _tuple_type([hints[name] for name in parameters])


def _tuple_type(hints: Sequence[Any]) -> Any:
    import numba

    numba_types: Any = numba.types
    return numba_types.BaseTuple.from_types([_numba_type(hint) for hint in hints])


def _numba_type(hint: Any) -> Any:
    import numba
    import numpy as np

    if hint is Any:
        raise _AnythingError
    numba_types: Any = numba.types
    if get_origin(hint) is np.ndarray:
        scalar = get_args(get_args(hint)[1])[0]
        return numba_types.Array(numba.from_dtype(np.dtype(scalar)), 1, "C")
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        fields = get_type_hints(hint)
        return numba_types.NamedTuple([_numba_type(fields[name]) for name in hint._fields], hint)
    if isinstance(hint, type) and issubclass(hint, bool):
        return numba_types.boolean
    if isinstance(hint, type) and issubclass(hint, int):  # an IntEnum too: a state is kept as a plain integer
        return numba_types.int64
    if isinstance(hint, type) and issubclass(hint, float):
        return numba_types.float64
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return numba.from_dtype(np.dtype(hint))
    if get_origin(hint) is tuple and Ellipsis not in get_args(hint):
        return _tuple_type(get_args(hint))
    raise TypeError(f"no compiled type is known for {hint!r}; give an example")
