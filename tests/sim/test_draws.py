"""The random function: exact values, the compiled twin, and whether its numbers look random along every key.

Each statistical assert has a false-alarm rate of 1e-6 (ALPHA). `test_a_bad_function_is_caught` proves the
power of each kind of test on a function that fails it.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim import draws, kernel
from sim.draws import stream_id, u

numba = pytest.importorskip("numba")

ALPHA = 1e-6
N = 1 << 18
LARGEST = 2**63 - 1


# --- exact values


def test_the_mixer_gives_the_published_splitmix64_sequence():
    # The sequence of seed 1234567 that implementations of SplitMix64 are checked against.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    states = [(1234567 + i * draws._GAMMA) % 2**64 for i in range(1, 5)]
    assert [draws._mix(state) for state in states] == expected


def test_a_stream_id_is_fnv_1a_without_its_top_bit():
    # 64-bit FNV-1a values from the test vectors of RFC 9923.
    published = {"": 0xCBF29CE484222325, "a": 0xAF63DC4C8601EC8C, "foobar": 0x85944171F73967E8}
    assert {name: stream_id(name) for name in published} == {n: h & LARGEST for n, h in published.items()}


def test_stored_values_stay():
    """A change here moves every simulated figure: [NUMBERS] in the changelog."""
    gpu = 6134841782697065173
    assert stream_id("gpu") == gpu
    golden = {
        (1, 0, 0, 0, 0): "0x1.c271a44a062d9p-1",
        (1, 0, gpu, 0, 0): "0x1.233bc64ea15fep-2",
        (1, 7, gpu, 2047, 3): "0x1.0e20ddae05327p-1",
        (LARGEST,) * 5: "0x1.2a1f3693d9729p-1",
    }
    assert {key: u(*key).hex() for key in golden} == golden


def test_a_draw_depends_on_its_key_alone():
    later = u(1, 2, 3, 4, 6)
    first = u(1, 2, 3, 4, 5)
    assert (u(1, 2, 3, 4, 5), u(1, 2, 3, 4, 6)) == (first, later)
    assert u(np.int64(1), np.uint64(2), np.int32(3), np.int64(4), np.int64(5)) == first


def test_a_float_is_no_key():
    with pytest.raises(TypeError):
        u(1, 0, 0, 0, 0.5)


def test_zero_and_one_never_occur():
    """The k of the largest and of the smallest hash, found by running the mixer backwards."""

    def unmix(z):
        for shift, factor in ((31, draws._M2), (27, draws._M1), (30, 1)):
            x = z
            for _ in range(64 // shift):  # undoes x ^ (x >> shift), a stretch of `shift` bits at a time
                x = z ^ (x >> shift)
            z = x * pow(factor, -1, 2**64) % 2**64
        return z

    assert draws._mix(unmix(12345)) == 12345
    state = draws._mix(draws._run_state(1, 2) ^ (3 * draws._GAMMA + 4) % 2**64)
    for hashed, expected in ((2**64 - 1, 1.0 - 2.0**-53), (0, 2.0**-53)):
        k = (unmix(hashed) - state) * pow(draws._GAMMA, -1, 2**64) % 2**64
        assert u(1, 2, 3, 4, k) == expected
        assert 0.0 < expected < 1.0


# --- plain and compiled


@pytest.fixture(scope="module")
def fill():
    kernel.register_overloads()

    @numba.njit
    def compiled(keys, out):
        for i in range(out.size):
            out[i] = u(keys[i, 0], keys[i, 1], keys[i, 2], keys[i, 3], keys[i, 4])

    def run(keys):
        out = np.empty(len(keys))
        compiled(np.ascontiguousarray(keys, dtype=np.int64), out)
        return out

    return run


def test_plain_and_compiled_agree_to_the_last_bit(fill, seed):
    keys = np.random.default_rng(seed).integers(0, LARGEST, size=(10_000, 5), endpoint=True)
    keys[:5_000] >>= 40  # half of them small, as most are in use
    keys[:3] = [[LARGEST] * 5, [0] * 5, [1] * 5]
    plain = np.array([u(*row) for row in keys.tolist()])
    assert (plain == fill(keys)).all()


@given(st.tuples(*[st.integers(0, LARGEST)] * 5))
def test_every_draw_lies_between_zero_and_one(key):
    assert 0.0 < u(*key) < 1.0


# --- does it look random?
#
# AXES: one key after the other along each part of the key, and along the diagonals on which a careless
# combination of two parts (their sum, say) would repeat itself.

AXES = {
    "k": (0, 0, 0, 0, 1),
    "unit": (0, 0, 0, 1, 0),
    "stream": (0, 0, 1, 0, 0),
    "replication": (0, 1, 0, 0, 0),
    "seed": (1, 0, 0, 0, 0),
    "unit and k": (0, 0, 0, 1, -1),
    "stream and unit": (0, 0, 1, -1, 0),
    "seed and replication": (1, -1, 0, 0, 0),
    "replication and unit": (0, 1, 0, 1, 0),
}


def along(axis, seed, n=N):
    """Return n keys in a row along an axis; the parts that stay begin in the middle of nowhere."""
    start = np.array([seed, N, stream_id("gpu"), N, N])
    return start + np.outer(np.arange(n), np.array(AXES[axis]))


def chi_square(x, bins=512):
    """Return the two-sided p-value of uniform marginals: too even is as suspect as too uneven."""
    counts = np.bincount((x * bins).astype(int), minlength=bins)
    return two_sided(stats.chi2.sf(((counts - x.size / bins) ** 2).sum() * bins / x.size, bins - 1))


def low_bits(x):
    return chi_square(x * 2.0**30 % 1.0)


def dkw(x):
    """Return the bound on the p-value of the largest distance from uniform (Massart 1990)."""
    distance = stats.kstest(x, "uniform").statistic
    return min(1.0, 2.0 * math.exp(-2.0 * x.size * distance**2))


def serial(x, lag=1):
    """Return the two-sided p-value of the correlation of neighbours; its deviate is normal at this size."""
    a, b = x[:-lag] - 0.5, x[lag:] - 0.5
    return 2.0 * stats.norm.sf(abs(12.0 * (a * b).sum() / math.sqrt(a.size)))


def pairs(x, y, bins=32):
    """Return the two-sided p-value of the joint counts of two sequences on a square grid."""
    cell = (x * bins).astype(int) * bins + (y * bins).astype(int)
    counts = np.bincount(cell, minlength=bins**2)
    return two_sided(stats.chi2.sf(((counts - x.size / bins**2) ** 2).sum() * bins**2 / x.size, bins**2 - 1))


def neighbours(x):
    return pairs(x[0::2], x[1::2])


def two_sided(p):
    return min(1.0, 2.0 * min(p, 1.0 - p))


TESTS = {"chi-square": chi_square, "low bits": low_bits, "DKW": dkw, "serial": serial, "pairs": neighbours}


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("axis", AXES)
def test_numbers_along_an_axis_look_random(fill, seed, axis, name):
    """False-alarm rate 1e-6 for each of the 45."""
    assert TESTS[name](fill(along(axis, seed))) > ALPHA


@pytest.mark.parametrize("lag", [2, 3, 8, 64, 1000])
def test_draws_of_a_unit_are_not_correlated_at_longer_lags(fill, seed, lag):
    """False-alarm rate 1e-6 each."""
    assert serial(fill(along("k", seed)), lag) > ALPHA


@pytest.mark.parametrize("axis", [axis for axis in AXES if axis != "k"])
def test_neighbouring_sequences_are_independent(fill, seed, axis):
    """Two whole sequences along k whose keys are neighbours. False-alarm rate 1e-6 for each of the 16."""
    keys = along("k", seed)
    x, y = fill(keys), fill(keys + np.array(AXES[axis]))
    assert pairs(x, y) > ALPHA
    assert 2.0 * stats.norm.sf(abs(12.0 * ((x - 0.5) * (y - 0.5)).sum() / math.sqrt(x.size))) > ALPHA


def test_named_streams_are_independent(fill, seed):
    """One draw from each of many streams; two streams side by side. False-alarm rate 1e-6 for each of 6."""
    names = along("k", seed, 100_000)
    names[:, 2] = [stream_id(f"class-{i}") for i in range(len(names))]
    assert len(set(names[:, 2].tolist())) == len(names)
    x = fill(names)
    for name, test in TESTS.items():
        assert test(x) > ALPHA, name
    one, other = along("k", seed), along("k", seed)
    one[:, 2], other[:, 2] = stream_id("gpu life"), stream_id("gpu victim")
    assert pairs(fill(one), fill(other)) > ALPHA


def test_seeds_and_replications_do_not_trade_places(fill, seed):
    """u(1, 2, ...) against u(2, 1, ...), and so on for all. False-alarm rate 1e-6 for each of the 10."""
    for one in range(5):
        for other in range(one):
            keys = np.tile(np.array([seed, 11, 12, 13, 14]), (N, 1))
            keys[:, one] = np.arange(N)
            swapped = keys.copy()
            swapped[:, [one, other]] = keys[:, [other, one]]
            assert pairs(fill(keys), fill(swapped)) > ALPHA, (one, other)


# --- would the tests notice?


def unmixed(keys):
    """Multiply and shift once instead of mixing: a counter in disguise."""
    z = keys.astype(np.uint64) @ np.full(5, draws._GAMMA, dtype=np.uint64)
    return ((z >> np.uint64(12)) + 0.5) * 2.0**-52


def skewed(keys, fill):
    return fill(keys) ** 1.05


def summed(keys, fill):
    """Add unit and k before hashing, as a careless key would."""
    keys = keys.copy()
    keys[:, 3] += keys[:, 4]
    keys[:, 4] = 0
    return fill(keys)


def repeating(keys, fill):
    """Repeat the number before with probability 4 %."""
    x = fill(keys)
    again = np.flatnonzero(fill(keys + np.array([0, 0, 999, 0, 0]))[1:] < 0.04) + 1
    y = x.copy()
    y[again] = x[again - 1]
    return y


def short(keys, fill):
    """Keep 30 bits only."""
    return np.floor(fill(keys) * 2.0**30) * 2.0**-30


def test_a_bad_function_is_caught(fill, seed):
    """Every kind of test rejects, at the same level, a function with the fault it is there for."""
    keys = along("k", seed)
    assert chi_square(unmixed(keys)) < ALPHA
    assert neighbours(unmixed(keys)) < ALPHA
    assert serial(unmixed(keys)) < ALPHA
    assert chi_square(skewed(keys, fill)) < ALPHA
    assert dkw(skewed(keys, fill)) < ALPHA
    assert serial(repeating(keys, fill)) < ALPHA
    assert neighbours(repeating(keys, fill)) < ALPHA
    assert low_bits(short(keys, fill)) < ALPHA
    shifted = keys + np.array(AXES["unit and k"])
    assert pairs(summed(keys, fill), summed(shifted, fill)) < ALPHA
