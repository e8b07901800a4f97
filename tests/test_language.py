"""The words: what the code calls things is what the README explains, and the changelog keeps its form."""

import re
from pathlib import Path

import pytest

from sim import codes

ROOT = Path(__file__).resolve().parent.parent
TAGS = ("[NEW]", "[FIX]", "[BREAKING]", "[NUMBERS]")


@pytest.mark.parametrize("words", ["SYMPTOMS", "SCOPES", "LAYERS", "PHASES"])
def test_every_word_of_the_code_is_in_the_nomenclature(words):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [word for word in getattr(codes, words) if f"`{word}`" not in readme] == []


def test_every_ledger_category_is_explained():
    from sim.ledger import BASE_CATEGORIES

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [category for category in BASE_CATEGORIES if f"| `{category}` |" not in readme] == []
    assert "| `restart.<layer>` |" in readme


def test_every_changelog_entry_says_what_it_means_to_a_user():
    _rules, versions = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("## ", 1)
    entries = re.findall(r"^- (.*)$", versions, re.M)
    assert entries
    assert [entry for entry in entries if not entry.startswith(TAGS)] == []


def test_decisions_are_numbered_without_gaps_and_have_their_parts():
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(path.name[:4])}. "), path.name
        for part in ("## Context", "## Decision", "## What it costs"):
            assert part in text, f"{path.name} lacks {part}"


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
