"""Text <-> SI: exact where it can be, one clear line where it cannot be read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim import units
from sim.units import format_bytes, format_duration, parse_bandwidth, parse_bytes, parse_duration, parse_rate

DAY = 86400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4h30m", 16200.0),
        ("4h 30m", 16200.0),
        ("275s", 275.0),
        ("30d", 30 * DAY),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        ("1 week", 7 * DAY),
        ("2min", 120.0),
        ("10 minutes", 600.0),
        ("1e3s", 1000.0),
        ("60", 60.0),
        (0.37, 0.37),
        (0, 0.0),
    ],
)
def test_durations_are_read_exactly(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


BAD_DURATIONS = ["", " ", "5M", "s", "-3s", "1h1h", "30m4h", "4 hours ago", "1:30", "nan", "inf", "١s", "5s;"]


@pytest.mark.parametrize(
    "bad",
    [*BAD_DURATIONS, True, None, [], {}, math.nan, math.inf, -1, 1e300, pytest.param(10**5000, id="huge")],
)
def test_a_bad_duration_is_one_line_that_says_what_was_got_and_an_example(bad: object) -> None:
    with pytest.raises(ValueError, match=r"such as '4h30m' or '275s'") as caught:
        parse_duration(bad)
    assert "(got " in str(caught.value) and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "size"),
    [("48.2GB", 48.2e9), ("80GiB", 80 * 2**30), ("1 KB", 1e3), ("2TiB", 2**41), ("7B", 7), (12, 12)],
)
def test_sizes(text: object, size: float) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "speed"),
    [("175MB/s", 175e6), ("3200Gbps", 4e11), ("400 Gbit/s", 5e10), ("2GiB/s", 2**31), (5.0, 5.0)],
)
def test_bandwidths_in_bytes_and_in_bits(text: object, speed: float) -> None:
    assert parse_bandwidth(text) == speed


@pytest.mark.parametrize("bad", ["48gb", "GB", "-1GB", "1.2.3GB", None, True, [1]])
def test_bad_sizes_and_bandwidths(bad: object) -> None:
    with pytest.raises(ValueError, match="such as"):
        parse_bytes(bad)
    with pytest.raises(ValueError, match="such as"):
        parse_bandwidth(bad)


def test_a_bandwidth_is_not_a_size() -> None:
    with pytest.raises(ValueError, match="175MB/s"):
        parse_bandwidth("175MB")


@pytest.mark.parametrize(
    ("text", "rate", "per"),
    [
        ("3.8 per 1000 node-days", 3.8 / (1000 * DAY), "node"),
        ("0.01 per day", 0.01 / DAY, None),
        ("1 per week", 1 / (7 * DAY), None),
        ("148 per 110592 node-days", 148 / (110592 * DAY), "node"),
        ("2 per gpu-year", 2 / (365.25 * DAY), "gpu"),
        (1e-6, 1e-6, None),
        (0, 0.0, None),
    ],
)
def test_rates(text: object, rate: float, per: str | None) -> None:
    assert parse_rate(text) == (rate, per)


@pytest.mark.parametrize(
    "bad", ["3.8", "3 per", "x per day", "3 per month", "3 per 0 days", "3 per host-day", "-1 per day"]
)
def test_bad_rates(bad: str) -> None:
    if bad == "3.8":  # a plain number is events per second
        assert parse_rate(bad) == (3.8, None)
        return
    with pytest.raises(ValueError, match="3.8 per 1000 node-days"):
        parse_rate(bad)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(16200, "4h 30m"), (275, "4m 35s"), (0.37, "0.37s"), (0, "0s"), (59.97, "1m"), (3599.7, "1h"), (90000,
    "1d 1h"), (math.inf, "never"), (-90, "-1m 30s"), (86400 * 365.0, "365d"),
    (86400 + 16.8 * 3600, "1d 17h"), (86400 * 2 - 60, "2d"), (3600 + 59.6 * 60, "2h"), (86399, "1d")],
)  # fmt: skip
def test_durations_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_sizes_for_people() -> None:
    assert [format_bytes(n) for n in (48.2e9, 2.3e12, 512, 999_960)] == ["48.2GB", "2.3TB", "512B", "1MB"]


@given(st.floats(min_value=0, max_value=1e17))
def test_what_is_written_is_read_back_exactly(x: float) -> None:
    assert parse_duration(units.exact_duration(x)) == x
    assert parse_bytes(units.exact_bytes(x)) == x
    assert parse_bandwidth(units.exact_bandwidth(x)) == x
    assert parse_rate(units.exact_rate(x))[0] == x


@given(
    st.one_of(
        st.text(max_size=40), st.floats(), st.integers(), st.none(), st.booleans(), st.binary(max_size=5)
    )
)
def test_junk_raises_value_error_or_gives_a_finite_number(junk: object) -> None:
    for parse in (parse_duration, parse_bytes, parse_bandwidth, lambda x: parse_rate(x)[0]):
        try:
            value = parse(junk)
        except ValueError as error:
            assert "\n" not in str(error)
        else:
            assert 0 <= value < math.inf
