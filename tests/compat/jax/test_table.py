"""Each row of the table is a module whose names are there."""

import importlib
from pathlib import Path

import pytest

from stretto.compat.jax import presented
from stretto.compat.jax.table import ROWS, module_of


@pytest.mark.parametrize("path", ROWS)
def test_names_are_those_of_their_modules(path):
    module = module_of(path)
    assert module.__doc__ == f"``jax.{path}``." and module_of(path) is module
    for source, names in ROWS[path].items():
        for name in [name for name in names if name != "*"]:
            old, _, new = name.partition(">")
            value = getattr(module, new or old)
            if source != "primitives":
                assert value is getattr(importlib.import_module(source), old)
            assert (new or old) in dir(module)
    for source in [source for source, names in ROWS[path].items() if "*" in names]:
        public = [n for n in dir(importlib.import_module(source)) if not n.startswith("_")]
        assert public and {*public} <= {*dir(module)}


def test_a_row_has_no_file():
    folder = Path(presented.__file__).parent
    assert not [path for path in ROWS if (folder / f"{path.replace('.', '/')}.py").exists()]
    assert module_of("numpy") is None


def test_other_names_are_missing():
    for path in ("ops", "interpreters.ad"):
        with pytest.raises(AttributeError):
            module_of(path).nowhere  # noqa: B018
