"""Decisions cite files that exist, and each other by their right names."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))

_SOURCE = re.compile(r"`(src/stretto/[\w./]+)`")
_INNER = re.compile(
    r"`((?:_engine|core|ops|transforms|control|rolling|plan|lower|runtime|api)/[\w./]+)`"
)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.name[:4])
def test_what_a_decision_cites_exists(decision):
    text = decision.read_text(encoding="utf-8")
    missing = [path for path in _SOURCE.findall(text) if not (ROOT / path).exists()]
    missing += [link for link in _LINK.findall(text) if not (decision.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.name[:4])
def test_modules_are_cited_by_their_path_from_the_root(decision):
    assert not _INNER.findall(decision.read_text(encoding="utf-8"))


def test_decisions_are_numbered_without_gaps():
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
