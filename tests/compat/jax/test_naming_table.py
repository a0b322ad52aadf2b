"""Each row of the table is a module whose names are there."""

import importlib

import pytest

from stretto import lax
from stretto.compat.jax.jaxprs.operations import primitive_of
from stretto.compat.jax.keys import LAX_TAKING_KEYS
from stretto.compat.jax.modules import ROWS, module_of


@pytest.mark.parametrize("path", ROWS)
def test_names_are_those_of_their_modules(path):
    module = module_of(path)
    whole = [*ROWS[path].values()] == [["*"]] and "primitives" not in ROWS[path]
    assert whole or module.__doc__ == f"``jax.{path}``."
    assert module.__doc__ and module_of(path) is module
    assert all([hasattr(module, name) for name in getattr(module, "__all__", ())])
    for source, names in ROWS[path].items():
        for name in [name for name in names if name[0] != "*"]:
            old, _, new = name.partition(">")
            value = getattr(module, new or old)
            if source != "primitives":
                assert value is getattr(importlib.import_module(source), old)
            assert (new or old) in dir(module)
    stars = [source for source, names in ROWS[path].items() if "*" in names]
    for source in [source for source in stars if source != "primitives"]:
        public = [n for n in dir(importlib.import_module(source)) if not n.startswith("_")]
        assert public and {*public} <= {*dir(module)}


def test_rows_are_sorted_and_each_is_one():
    assert [*ROWS] == sorted(ROWS)
    assert module_of("nowhere") is None


def test_the_first_source_that_has_a_name_gives_it():
    module = module_of("lax")
    assert module.sin is lax.sin and module.sin_p is primitive_of("sin")
    assert module.select is LAX_TAKING_KEYS["select"] is not lax.select
    assert {"sin", "sin_p", "select"} <= {*dir(module)}


def test_other_names_are_missing():
    for path in ("ops", "lax", "interpreters.ad"):
        with pytest.raises(AttributeError):
            module_of(path).nowhere  # noqa: B018
