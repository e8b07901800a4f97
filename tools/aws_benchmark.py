"""Fill the tables of docs/aws-benchmark.md from the model: ``python tools/aws_benchmark.py [--check]``.

A block is ``<!-- NAME: begin -->`` ... ``<!-- NAME: end -->``; every number of the page stands in one. With ``--check``
nothing is written; exit code 1 if a block does not hold what the model says today. Seeds are fixed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from aws_tables import BLOCKS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "aws-benchmark.md"
BLOCK = re.compile(r"<!-- (?P<name>[a-z0-9-]+): begin -->\n.*?<!-- (?P=name): end -->", re.S)


def filled(text: str) -> str:
    """Return the page with its blocks as the model fills them now."""
    found = [block["name"] for block in BLOCK.finditer(text)]
    if sorted(found) != sorted(BLOCKS):
        missing, unknown = sorted(set(BLOCKS) - set(found)), sorted(set(found) - set(BLOCKS))
        raise ValueError(f"{PAGE.name}: blocks missing: {missing}, unknown: {unknown}, or one is there twice")

    def fill(block: re.Match[str]) -> str:
        name = block["name"]
        return f"<!-- {name}: begin -->\n{BLOCKS[name]().strip()}\n<!-- {name}: end -->"

    return BLOCK.sub(fill, text)


def main() -> int:
    """Fill or check the page."""
    before = PAGE.read_text(encoding="utf-8")
    after = filled(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            print(f"{PAGE.name}: a block differs from what the model says; run: python tools/aws_benchmark.py")
        return int(before != after)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
