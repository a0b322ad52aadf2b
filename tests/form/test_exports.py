"""Exports: each name of a package has one import, and is public in its module."""

import ast
import importlib
from pathlib import Path

import pytest

import stretto
from tests.exports import PACKAGES, imports_of, table_of


@pytest.mark.parametrize("package", PACKAGES)
def test_each_import_makes_its_names_public_and_is_the_only_one(package):
    statements = imports_of(package)
    assert {type(node) for node in statements} == {ast.ImportFrom}
    for alias in [alias for node in statements for alias in node.names]:
        assert alias.asname == alias.name or (alias.name, alias.asname) == ("*", None)
    homes = [node.module for node in statements]
    names = [name for names in table_of(package).values() for name in names]
    assert len(homes) == len({*homes}) and len(names) == len({*names})
    assert {*names} <= {*importlib.import_module(package).__all__}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_names_what_its_package_takes(package):
    for home, names in table_of(package).items():
        if home != package:
            assert {*names} <= {*getattr(importlib.import_module(home), "__all__", names)}


def test_every_package_with_imports_on_demand_is_listed():
    root = Path(stretto.__file__).parent
    found = {
        ".".join(("stretto", *file.parent.relative_to(root).parts))
        for file in root.rglob("__init__.py")
        if "with imports_on_demand(" in file.read_text(encoding="utf-8")
    }
    assert found == set(PACKAGES)
