"""Every law passes one contract: its quantiles, mean and median, its life after an age, its age long after the start.

Distributions are compared with scipy's over all quantiles where the law has one, so those checks are exact up to the
stated error; the draws themselves are checked against the law with the Dvoretzky-Kiefer-Wolfowitz bound (Massart
1990), at a false alarm of 1e-6 a test: sup |F_n - F| < sqrt(ln(2 / 1e-6) / 2n).
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from sim import sampling
from sim.draws import stream_id, u
from sim.schema.law import Law

DAY = 86400.0
VALUES = [30.0, 40.0, 40.0, 55.0, 80.0, 200.0]


def lognormal(median, mean):
    sigma = math.sqrt(2 * math.log(mean / median))
    return stats.lognorm(sigma, scale=median)


def weibull(shape, mean):
    return stats.weibull_min(shape, scale=mean / math.gamma(1 + 1 / shape))


def gamma(cv, mean):
    return stats.gamma(cv**-2, scale=mean * cv**2)


LAWS = {
    "uniform": ({"uniform": {"low": 20, "high": 50}}, stats.uniform(20, 30)),
    "uniform from 0": ({"uniform": {"low": 0, "high": 50}}, stats.uniform(0, 50)),
    "exponential": ({"exponential": {"mean": "5min"}}, stats.expon(scale=300)),
    "weibull, infant deaths": ({"weibull": {"shape": 0.6, "mean": 100 * DAY}}, weibull(0.6, 100 * DAY)),
    "weibull, wear": ({"weibull": {"shape": 1.5, "mean": 100 * DAY}}, weibull(1.5, 100 * DAY)),
    "weibull, nearly constant": ({"weibull": {"shape": 30, "mean": 60}}, weibull(30, 60)),
    "lognormal": ({"lognormal": {"median": "59min", "mean": "352min"}}, lognormal(3540, 21120)),
    "lognormal, narrow": ({"lognormal": {"median": 100, "mean": 101}}, lognormal(100, 101)),
    "gamma, bursts": ({"gamma": {"mean": 60, "cv": 3}}, gamma(3, 60)),
    "gamma, regular": ({"gamma": {"mean": 60, "cv": 0.3}}, gamma(0.3, 60)),
}
NAMES = list(LAWS)
SHARES = np.concatenate(
    ([1e-12, 1e-9, 1e-6, 1e-4], np.linspace(0.001, 0.999, 333), [1 - 1e-4, 1 - 1e-6, 1 - 1e-9])
)


class Built:
    """A law as the rules see it."""

    def __init__(self, raw):
        self.law = Law.parse(raw)
        self.tables = []
        self.laws = [sampling.build_row(self.law, self.tables)]
        self.streams = [stream_id("tests.sampling")]

    def quantile(self, share, row=0):
        return sampling.quantile(self.laws, self.tables, row, share)

    def life_after(self, age, share):
        return sampling.life_after(self.laws, self.tables, 0, age, share)

    def equilibrium(self):
        self.laws.append(sampling.equilibrium_row(self.laws, self.tables, 0))
        return len(self.laws) - 1


@pytest.fixture(params=NAMES)
def case(request):
    raw, expected = LAWS[request.param]
    return Built(raw), expected


def dkw(n, alarm=1e-6):
    """Return how far an empirical distribution may lie from its law, but for one time in a million."""
    return math.sqrt(math.log(2 / alarm) / (2 * n))


# --- the contract


def test_quantiles_are_those_of_the_law(case):
    built, expected = case
    got = np.array([built.quantile(share) for share in SHARES])
    assert (np.diff(got) >= 0).all()
    assert got == pytest.approx(expected.ppf(SHARES), rel=3e-5)


def test_quantiles_at_the_ends_of_the_draws_are_finite_and_ordered(case):
    built, _ = case
    least, most = 2.0**-53, 1 - 2.0**-53
    assert 0 <= built.quantile(least) <= built.quantile(0.5) <= built.quantile(most) < math.inf


def test_mean_and_median_are_those_stated(case):
    built, expected = case
    assert built.law.mean_s() == pytest.approx(expected.mean(), rel=1e-9)
    assert sampling.mean_of_row(built.laws, built.tables, 0) == pytest.approx(expected.mean(), rel=1e-8)
    assert built.quantile(0.5) == pytest.approx(expected.median(), rel=1e-6)
    assert built.law.median_s() == pytest.approx(expected.median(), rel=1e-9)


def test_draws_follow_the_law(case, seed):
    built, expected = case
    n = 4000
    drawn = np.sort([sampling.draw(built, 0, seed, 0, unit, 3) for unit in range(n)])
    at = expected.cdf(drawn)
    steps = np.arange(n + 1) / n
    assert max(np.abs(at - steps[1:]).max(), np.abs(at - steps[:-1]).max()) < dkw(n)


def test_the_check_of_the_draws_has_teeth(seed):
    """A mean 6 % too large, 0.033 off in distribution, does not pass: the bound is 0.019 at n = 20000."""
    built = Built({"weibull": {"shape": 1.5, "mean": 106}})
    drawn = np.sort([sampling.draw(built, 0, seed, 0, unit, 3) for unit in range(20000)])
    at = weibull(1.5, 100).cdf(drawn)
    assert np.abs(at - np.arange(1, 20001) / 20000).max() > dkw(20000)


@pytest.mark.parametrize("reached", [1e-6, 0.1, 0.5, 0.9, 0.999])
def test_life_after_an_age_is_the_law_beyond_it(case, reached):
    """S(life) = (1 - share) S(age): the conditional law, through both tails."""
    built, expected = case
    age = float(expected.ppf(reached))
    shares = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    lives = np.array([built.life_after(age, share) for share in shares])
    assert (lives >= age).all() and (np.diff(lives) >= 0).all()
    assert expected.sf(lives) == pytest.approx((1 - shares) * expected.sf(age), rel=1e-4)


def test_life_after_no_age_is_the_law(case):
    built, _ = case
    assert [built.life_after(0.0, s) for s in (0.1, 0.9)] == [built.quantile(s) for s in (0.1, 0.9)]


def test_life_after_an_age_beyond_all_quantiles_is_not_below_it(case):
    built, expected = case
    age = 10 * float(expected.ppf(1 - 1e-9))
    assert all(age <= built.life_after(age, share) < math.inf for share in (1e-9, 0.5, 1 - 1e-9))


def test_the_equilibrium_law_has_the_density_of_survival_over_the_mean(case):
    """P(age < t) = integral of S to t over the mean (Cox 1962): at each quantile the integral gives the share."""
    built, expected = case
    row = built.equilibrium()
    for share in (0.001, 0.1, 0.5, 0.9, 0.999):
        t = built.quantile(share, row)
        knots = [float(expected.ppf(q)) for q in (1e-6, 0.01, 0.1, 0.5, 0.9, 0.99, 1 - 1e-6)]
        inside = sorted(k for k in knots if 0 < k < t)
        pieces = [0.0, *inside, t]
        area = sum(
            integrate.quad(expected.sf, low, high, epsabs=0, epsrel=1e-9, limit=200)[0]
            for low, high in zip(pieces, pieces[1:], strict=False)
        )
        assert area / expected.mean() == pytest.approx(share, abs=2e-5, rel=1e-3)


def test_a_long_run_of_lives_is_stationary(case, seed):
    """Age by the equilibrium law, then the life after it: what is left to live has the equilibrium law too."""
    built, expected = case
    row = built.equilibrium()
    n = 2000
    built.streams.append(stream_id("tests.sampling.age"))
    left = np.empty(n)
    for unit in range(n):
        age = sampling.draw(built, row, seed, 0, unit, 0)
        left[unit] = built.life_after(age, u(seed, 0, stream_id("tests.sampling.after"), unit, 0)) - age
    left.sort()
    shares = (np.arange(1, 100)) / 100
    at = np.searchsorted(left, [built.quantile(share, row) for share in shares]) / n
    assert np.abs(at - shares).max() < dkw(n)


# --- laws that are no density


def test_a_constant_is_always_the_same():
    built = Built("90s")
    assert {built.quantile(share) for share in (1e-9, 0.5, 1 - 1e-9)} == {90.0}
    assert built.life_after(30.0, 0.2) == 90.0 and built.life_after(100.0, 0.2) == 100.0
    row = built.equilibrium()
    assert [built.quantile(share, row) for share in (0.1, 0.5, 0.9)] == pytest.approx([9, 45, 81])


def test_an_empirical_law_gives_its_values_each_as_often():
    built = Built({"empirical": VALUES[::-1]})
    n = len(VALUES)
    assert [built.quantile((i + 0.5) / n) for i in range(n)] == VALUES
    assert sampling.mean_of_row(built.laws, built.tables, 0) == pytest.approx(sum(VALUES) / n)
    assert {built.life_after(40.0, (i + 0.5) / 3) for i in range(3)} == {55.0, 80.0, 200.0}
    assert built.life_after(200.0, 0.5) == 200.0 and built.life_after(199.0, 1 - 1e-16) == 200.0


def test_the_equilibrium_of_an_empirical_law():
    built = Built({"empirical": VALUES})
    row = built.equilibrium()
    total = sum(VALUES)
    for t in (10.0, 35.0, 40.0, 60.0, 150.0):
        share = sum(min(v, t) for v in VALUES) / total
        assert built.quantile(share, row) == pytest.approx(t, rel=1e-2)


@pytest.mark.parametrize("name", NAMES)
def test_a_law_split_at_its_median(name):
    raw, expected = LAWS[name]
    built = Built(raw)
    mean, median, low = sampling.split_at_median(built.laws, built.tables, 0)
    assert mean == pytest.approx(expected.mean(), rel=1e-6)
    assert median == pytest.approx(expected.median(), rel=1e-6)
    below = integrate.quad(lambda q: float(expected.ppf(q)), 0, 0.5)[0]
    assert low == pytest.approx(below + median / 2, rel=2e-3) and low <= mean
    assert sampling.split_at_median([(sampling.CONSTANT, 7.0, 0.0, 0, 0)], [], 0) == (7.0, 7.0, 7.0)


def test_chances_come_true_as_often_as_stated(seed):
    n, share = 4000, 0.2
    stream = stream_id("tests.sampling.chance")
    hits = sum(sampling.chance(None, stream, seed, 0, unit, 0, share) for unit in range(n))
    assert stats.binomtest(hits, n, share).pvalue > 1e-6
    assert sampling.chance(None, stream, seed, 0, 1, 0, 1.0) and not sampling.chance(
        None, stream, seed, 0, 1, 0, 0.0
    )
