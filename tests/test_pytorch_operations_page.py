"""The page of PyTorch's operations says what the table has."""

import importlib.util
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "make_pytorch_operations.py"


def test_it_is_up_to_date():
    spec = importlib.util.spec_from_file_location("make_pytorch_operations", PAGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGET.read_text("utf-8") == module.page(), (
        "docs/pytorch-operations.md is out of date; run: python docs/make_pytorch_operations.py"
    )
