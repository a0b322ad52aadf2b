"""The pages on a newcomer's tasks stay short: below forty lines of code."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]

PAGES = ["tabular-regression", "image-ensemble", "sweep", "language-model", "find-a-nan"]


@pytest.mark.parametrize("page", PAGES)
def test_below_forty_lines_of_code(page):
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    code = re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", text, re.MULTILINE)
    assert 10 < len([line for line in code if line.strip()]) < 40
