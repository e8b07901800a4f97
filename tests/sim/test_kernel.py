"""The register of rules, and that numba compiles every rule in it."""

import importlib
import pkgutil

import numpy as np
import pytest

import sim
from sim import kernel
from sim.draws import u

pytest.importorskip("numba")


def double(x: float) -> float:
    return 2.0 * x


def add_up(x: "np.ndarray[tuple[int], np.dtype[np.float64]]", n: int) -> float:
    x[0] = 0.0
    return x.sum() + n


def with_a_generator(x: float) -> float:
    total = 0.0
    for y in (z for z in {x, 2.0 * x} if type(z) is float):
        total += y
    return total


def add_one(x):
    return x + 1.0


def add_two(x: float) -> float:
    return x + 2.0


def fill_one(x):
    x[:] = 1.0


def fill_two(x):
    x[:] = 2.0


def of_no_type(x):
    return x


@pytest.fixture
def rules(monkeypatch):
    """Keep this module's rules out of the product's register."""
    monkeypatch.setattr(kernel, "RULES", dict(kernel.RULES))


def name(function):
    return f"{function.__module__}.{function.__qualname__}"


def test_a_rule_stays_the_same_plain_function(rules):
    assert kernel.rule(double) is double
    assert kernel.RULES[name(double)] is double


def test_a_rule_inside_a_function_is_refused():
    def inner():
        pass

    with pytest.raises(ValueError, match="module level"):
        kernel.rule(inner)


def test_registering_again_registers_nothing(rules):
    kernel.rule(double)
    assert name(double) in kernel.register_overloads()
    assert kernel.register_overloads() == []


def test_the_check_passes_rules_that_compile(rules):
    kernel.rule(double)
    kernel.rule(add_up)
    key = (1, 2, 3, 4, 5)
    examples = {"sim.draws.u": key, name(add_up): (np.ones(3), 1)}
    assert kernel.compile_check(prefix=__name__) == {}
    assert kernel.compile_check(examples, prefix="sim.draws") == {}
    assert kernel.compile_check(examples, prefix=__name__) == {}


def test_the_check_names_a_rule_that_does_not_compile(rules):
    kernel.rule(with_a_generator)
    kernel.rule(of_no_type)
    problems = kernel.compile_check(prefix=__name__)
    assert set(problems) == {name(with_a_generator), name(of_no_type)}
    assert "parameters without a type: x" in problems[name(of_no_type)]


def test_the_check_names_a_rule_that_compiles_to_something_else(rules):
    kernel.rule(compiled=lambda: add_one)(add_two)
    kernel.rule(compiled=lambda: fill_one)(fill_two)
    examples = {name(add_two): (1.5,), name(fill_two): (np.zeros(3),)}
    problems = kernel.compile_check(examples, prefix=__name__)
    assert problems[name(add_two)] == "plain gives 3.5, compiled gives 2.5"
    assert problems[name(fill_two)].startswith("plain leaves its arguments as")


def test_numba_compiles_every_rule_of_the_model():
    for module in pkgutil.walk_packages(sim.__path__, "sim."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert kernel.RULES["sim.draws.u"] is u
    assert kernel.compile_check(prefix="sim.") == {}
