"""Pages that programs write say what these would write today."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(
    "name", ["make_as_jax_tests", "make_pytorch_modules", "make_pytorch_operations"]
)
def test_they_are_up_to_date(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGET.read_text("utf-8") == module.page(), (
        f"docs/{module.TARGET.name} is out of date; run: python docs/{name}.py"
    )
