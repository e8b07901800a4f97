"""Fill the README's output blocks from the real commands: ``python tools/readme.py [--check]``.

A block is ``<!-- output of COMMAND: begin -->`` ... ``<!-- output of COMMAND: end -->``. With ``--check`` nothing is
written; exit code 1 if a block does not hold what its command prints today.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"<!-- output of (?P<command>[^:>]+): begin -->\n.*?<!-- output of (?P=command): end -->", re.S)


def output_of(command: str) -> str:
    """Run one of the README's commands in an empty folder; what it prints, at 100 columns."""
    words = command.replace("make demo", "goodput demo").split()
    program = Path(sys.executable).with_name(words[0])
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(program), *words[1:]], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def filled(text: str) -> str:
    """Return the README with its blocks as the commands print them now."""

    def fill(block: re.Match[str]) -> str:
        command = block["command"]
        marks = (f"<!-- output of {command}: {mark} -->" for mark in ("begin", "end"))
        return f"\n```\n{output_of(command)}\n```\n".join(marks)

    return BLOCK.sub(fill, text)


def main() -> int:
    """Fill or check the README."""
    before = README.read_text(encoding="utf-8")
    after = filled(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            print("README.md: a block differs from what its command prints; run: python tools/readme.py")
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
