"""The page of rules says what the classes say."""

import importlib.util
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "make_transformations.py"


def test_the_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("make_transformations", PAGE)
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.TARGET.read_text(encoding="utf-8") == maker.page(), (
        "docs/transformations.md is out of date; run: python docs/make_transformations.py"
    )
