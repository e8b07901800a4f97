"""What all tests share: Hypothesis profiles, the seed of the statistical tests, and `--update` for goldens.

The seed is fixed, so that a red test is a change in the product. GOODPUT_TEST_SEED=fresh (or a number) tries
another one and prints it: a lucky fixed seed must not hide a fault.
"""

import os
import secrets

# Rules are compiled here to be compared bit by bit, not to be fast: without the optimiser it takes a third of the time.
os.environ.setdefault("NUMBA_OPT", "0")

import pytest  # noqa: E402 - numba reads its environment when it is first imported
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=200, print_blob=True)
settings.register_profile("dev", parent=settings.get_profile("ci"), max_examples=30)
settings.register_profile(
    "nightly", deadline=None, max_examples=5000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SEED = "GOODPUT_TEST_SEED"


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite the golden files instead of comparing")


def pytest_configure(config):
    if os.environ.get(SEED) == "fresh":  # settled once, here: workers inherit the environment
        os.environ[SEED] = str(secrets.randbelow(2**31))


def pytest_report_header(config):
    return f"statistical seed: {os.environ.get(SEED, '1')} ({SEED}=N or fresh)"


@pytest.fixture(scope="session")
def seed():
    return int(os.environ.get(SEED, "1"))


@pytest.fixture
def update(request):
    return request.config.getoption("--update")
