"""Each name of the operations has one home: modules export what they define."""

import importlib
import pkgutil

import pytest

from stretto._engine import ops

MODULES = [module.name for module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_modules_export_only_what_they_define(name):
    module = importlib.import_module(name)
    exports = [getattr(module, export) for export in getattr(module, "__all__", ())]
    # Aliases of types and constants name a module of Python's, or none.
    homes = {str(getattr(value, "__module__", None)) for value in exports if callable(value)}
    assert {home for home in homes if home.startswith("stretto.")} <= {name}
