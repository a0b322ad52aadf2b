"""Decisions cite files that exist, and each other by their right names."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))

_SOURCE = re.compile(r"`(src/stretto/[\w./]+)`")
_INNER = re.compile(
    r"`((?:_engine|core|ops|autodiff|higher_order|passes|lowering|xla|api)/[\w./]+)`"
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


def test_the_index_has_each_decision_once_under_its_title():
    index = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(.+?)\]\((decisions/[\w.-]+)\)", index, re.MULTILINE)
    titles = [
        (path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# "), path.name)
        for path in DECISIONS
    ]
    assert sorted(listed) == sorted((title, f"decisions/{name}") for title, name in titles)
