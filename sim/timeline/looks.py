"""How the page shows what a run did: a colour, a pattern and a word for each thing, so that none is told by hue alone.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any kind of colour vision can tell
apart, and greys. Marks are those of the text timeline where it has one.
"""

from __future__ import annotations

from typing import NamedTuple

# Strokes of a pattern on a tile of 8 x 8 px, as an SVG path.
TILES = {
    "plain": "",
    "rising": "M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "falling": "M-2 6L2 10M0 0L8 8M6 -2L10 2",
    "crossed": "M-2 2L2 -2M0 8L8 0M6 10L10 6M-2 6L2 10M0 0L8 8M6 -2L10 2",
    "flat": "M0 2H8M0 6H8",
    "upright": "M2 0V8M6 0V8",
    "grid": "M0 4H8M4 0V8",
    "dots": "M1.5 2h1M5.5 6h1",
    "few dots": "M3.5 4h1",
    "zigzag": "M0 6L4 2L8 6",
    "dashes": "M1 4H5",
}


class Family(NamedTuple):
    """Things of one colour: key, word, one-letter mark, colour, colour of text and strokes on it, pattern."""

    key: str
    label: str
    mark: str
    colour: str
    ink: str
    tile: str
    thin: bool = False
    """drawn as a line: the usual state, which needs no attention"""


_DARK, _LIGHT = "#000000", "#ffffff"

# The categories of the ledger, in its order; all of restart.<layer> are one family.
LEDGER = (
    Family("productive", "kept steps", "=", "#009E73", _DARK, "plain"),
    Family("startup", "first start", "s", "#BBBBBB", _DARK, "plain"),
    Family("checkpoint_stall", "stall for a save", "#", "#56B4E9", _DARK, "dots"),
    Family("rework", "rework: steps run again or lost", "x", "#D55E00", _DARK, "crossed"),
    Family("detect", "not noticed yet", "?", "#F0E442", _DARK, "zigzag"),
    Family("checkpoint_load", "load of a checkpoint", "l", "#0072B2", _LIGHT, "falling"),
    Family("node_wait", "waits for nodes", "w", "#000000", _LIGHT, "grid"),
    Family("slowdown", "slow-down", "~", "#E69F00", _DARK, "upright"),
    Family("restart", "restart", "r", "#CC79A7", _DARK, "plain"),
)
ROWS = (
    Family("attempt", "attempt that resumed", "", "#CC79A7", _DARK, "plain"),
    Family("attempt_failed", "attempt that failed", "!", "#CC79A7", _DARK, "crossed"),
    Family("attempt_cut", "attempt cut by a fault", "/", "#CC79A7", _DARK, "dashes"),
    Family("write", "write of a checkpoint", "#", "#56B4E9", _DARK, "plain"),
    Family("write_lost", "write that is lost", "x", "#56B4E9", _DARK, "crossed"),
    Family("works", "works", "-", "#009E73", _DARK, "plain", thin=True),
    Family("hot", "hot spare", "h", "#BBBBBB", _DARK, "flat", thin=True),
    Family("cold", "cold spare", "c", "#BBBBBB", _DARK, "few dots", thin=True),
    Family("repair", "away, in repair", "R", "#555555", _LIGHT, "rising"),
    Family("retired", "retired", "X", "#555555", _LIGHT, "crossed"),
    Family("slow", "slows the job down", "~", "#E69F00", _DARK, "upright"),
)
FAMILIES = LEDGER + ROWS

# Phases of a start or restart differ by pattern.
PHASE_TILES = {
    "abort": "crossed",
    "backoff": "few dots",
    "rendezvous": "flat",
    "process_start": "rising",
    "init": "falling",
    "warmup": "upright",
}
_BY_PHASE = ("startup", "restart")


class Look(NamedTuple):
    """How one kind of stretch is drawn: its family, pattern, word, and for the job's bands the ledger's category."""

    family: str
    tile: str
    label: str
    category: str | None = None
    layer: str = ""


def of_band(category: str, phase: str, layer: str = "") -> Look:
    """Return the look of a band of the job."""
    key = category.partition(".")[0]
    family = _by_key(key)
    if key in _BY_PHASE:
        word = phase or ("startup" if key == "startup" else "restart")
        return Look(key, PHASE_TILES.get(phase, "plain"), word, category, layer)
    words = {"productive": "steps", "rework": "rework", "checkpoint_stall": "save", "checkpoint_load": "load"}
    return Look(key, family.tile, words.get(key, family.label), category, layer)


def of_phase(phase: str, layer: str | None) -> Look:
    """Return the look of a phase in the row of a rank or a pod."""
    if phase in ("detect", "checkpoint_load", "node_wait"):
        return of_band(phase, phase, layer or "")._replace(category=None)
    return of_band("restart" if layer else "startup", phase, layer or "")._replace(category=None)


def of_row(key: str, label: str = "") -> Look:
    """Return the look of a stretch in another row."""
    family = _by_key(key)
    return Look(key, family.tile, label or family.label)


def _by_key(key: str) -> Family:
    return next(family for family in FAMILIES if family.key == key)
