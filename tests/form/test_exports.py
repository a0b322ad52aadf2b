"""What packages and public modules export, and that it is written once."""

import ast
import importlib
from types import ModuleType

import pytest

import stretto
from tests.exports import PACKAGES, file_of, make_exports, table_of


@pytest.mark.parametrize("package", [*PACKAGES, "stretto.typing"])
def test_the_names_are_those_of_the_imports(package):
    """Those that the package loads, and those that type checkers read."""
    file = file_of(package)
    assert file.read_text("utf-8") == make_exports.source(file), (
        "out of date; run: python tools/make_exports.py"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_has_one_import_and_is_public(package):
    imports = [
        alias
        for node in ast.parse(file_of(package).read_text("utf-8")).body
        if isinstance(node, ast.If)
        for statement in node.body
        for alias in statement.names
    ]
    assert {alias.asname for alias in imports} <= {None, *[alias.name for alias in imports]}
    names = [name for names in table_of(package).values() for name in names]
    assert len(names) == len({*names})
    assert {*names} <= {*importlib.import_module(package).__all__}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_names_what_its_package_takes(package):
    for home, names in table_of(package).items():
        if home != package:
            assert {*names} <= {*getattr(importlib.import_module(home), "__all__", names)}


def test_every_package_with_names_on_demand_is_listed():
    names = {make_exports.name_of(file) for file in make_exports.packages()}
    assert names == {*PACKAGES, "stretto.typing"}


def public_modules():
    """The modules that users reach from ``stretto``, and that of laws."""
    found, waiting = {}, [stretto, importlib.import_module("stretto.laws")]
    while waiting:
        module = waiting.pop()
        found[module.__name__] = module
        members = [getattr(module, name) for name in module.__all__ if name != "torch"]
        waiting += [
            member
            for member in members
            if isinstance(member, ModuleType)
            and member.__name__.startswith("stretto")
            and member.__name__ not in found
        ]
    return found


@pytest.mark.parametrize("name", public_modules())
def test_a_public_module_shows_its_own_names_alone(name):
    module = public_modules()[name]
    shown = {name for name in dir(module) if not name.startswith("_")}
    assert shown == {*module.__all__}
    for name in shown:
        member = getattr(module, name)
        assert not isinstance(member, ModuleType) or member.__name__.startswith("stretto.")
    assert not shown & {"Any", "Callable", "TYPE_CHECKING", "annotations", "exports", "np", "re"}
