"""Random numbers as a pure function of their meaning.

There is no generator object in the model. `u(seed, replication, stream, unit, k)` is a counter-based hash, so
the k-th draw of a unit is the same number whatever else happens in the run, in whatever order and on however
many workers, and two designs compared under one seed meet the same faults. Laws are sampled from it by their
inverse distribution function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import index

from sim.kernel import rule

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_M1 = 0xBF58476D1CE4E5B9
_M2 = 0x94D049BB133111EB
_SCALE = 2.0**-52  # 52 bits and a half: with 53 the largest value would round up to exactly 1


def _mix(z: int) -> int:
    """Scramble 64 bits: the finaliser of SplitMix64 (OOPSLA 2014, doi 10.1145/2660193.2660195)."""
    z = ((z ^ (z >> 30)) * _M1) & _MASK
    z = ((z ^ (z >> 27)) * _M2) & _MASK
    return z ^ (z >> 31)


@lru_cache(maxsize=4096)
def _run_state(seed: int, replication: int) -> int:
    z = _mix((index(seed) + _GAMMA) & _MASK)
    return _mix(z ^ ((index(replication) + _GAMMA) & _MASK))


def _compiled_u() -> Callable[..., float]:
    """Return `u` in numba's unsigned 64-bit arithmetic; the plain one below gives the same bits."""
    import numpy as np

    gamma, m1, m2 = np.uint64(_GAMMA), np.uint64(_M1), np.uint64(_M2)
    s12, s27, s30, s31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)
    scale = _SCALE

    def compiled(seed, replication, stream, unit, k):  # type: ignore[no-untyped-def]
        z = np.uint64(seed) + gamma
        z = (z ^ (z >> s30)) * m1
        z = (z ^ (z >> s27)) * m2
        z = (z ^ (z >> s31)) ^ (np.uint64(replication) + gamma)
        z = (z ^ (z >> s30)) * m1
        z = (z ^ (z >> s27)) * m2
        z = (z ^ (z >> s31)) ^ (np.uint64(stream) * gamma + np.uint64(unit))
        z = (z ^ (z >> s30)) * m1
        z = (z ^ (z >> s27)) * m2
        z = (z ^ (z >> s31)) + np.uint64(k) * gamma
        z = (z ^ (z >> s30)) * m1
        z = (z ^ (z >> s27)) * m2
        return (float((z ^ (z >> s31)) >> s12) + 0.5) * scale

    return compiled


@rule(compiled=_compiled_u)
def u(seed: int, replication: int, stream: int, unit: int, k: int) -> float:
    """Return a uniform number in the open interval (0, 1), a pure function of its five integers.

    Parameters
    ----------
    seed, replication
        The study and the run in it.
    stream
        What is drawn, such as the lifetimes of one fault class: `stream_id` of its name.
    unit
        Whose draw it is: the index of the rank, node or job.
    k
        How many draws of this kind the unit has made before.

    Notes
    -----
    Integers of any size count by their lowest 64 bits. Values are odd multiples of 2^-53, so neither 0 nor 1
    occurs and any inverse distribution function is safe. Written out in full because each draw comes here.

    Raises
    ------
    TypeError
        If an argument is not an integer: a float that stands for a counter is a mistake.
    """
    z = _run_state(seed, replication) ^ ((index(stream) * _GAMMA + index(unit)) & _MASK)
    z = ((z ^ (z >> 30)) * _M1) & _MASK
    z = ((z ^ (z >> 27)) * _M2) & _MASK
    z = ((z ^ (z >> 31)) + index(k) * _GAMMA) & _MASK
    z = ((z ^ (z >> 30)) * _M1) & _MASK
    z = ((z ^ (z >> 27)) * _M2) & _MASK
    return (((z ^ (z >> 31)) >> 12) + 0.5) * _SCALE


def stream_id(name: str) -> int:
    """Return the stream of a name, 0 to 2^63 - 1: the low 63 bits of FNV-1a over its UTF-8 bytes (RFC 9923).

    The same name gives the same stream in every version and on every machine. So a renamed fault class draws
    other numbers, and an added one changes nobody else's.
    """
    h = 0xCBF29CE484222325
    for byte in name.encode("utf-8"):
        h = ((h ^ byte) * 0x100000001B3) & _MASK
    return h & ((1 << 63) - 1)
