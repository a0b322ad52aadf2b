"""Pages that programs write say what these would write today."""

import importlib.util
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.parametrize(
    "name",
    [
        "make_as_jax_tests",
        "make_conformance",
        "make_house",
        "make_layers",
        "make_pytorch_modules",
        "make_pytorch_operations",
        "make_transformations",
    ],
)
def test_they_are_up_to_date(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGET.read_text("utf-8") == module.page(), (
        f"{module.TARGET.name} is out of date; run: python tools/{name}.py"
    )
