"""Pages that programs write say what these would write today."""

import importlib.util
import re
from pathlib import Path

import pytest

from stretto._engine.passes import prepare

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"


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


def test_the_page_of_the_architecture_lists_the_passes_in_order():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    _, _, table = text.partition("| pass | what it does |")
    listed = re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE)
    assert listed == [one.name for one in (*prepare.PREPARING, *prepare.FINISHING)]
