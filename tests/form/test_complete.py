"""No public function is without an entry in the table, or a reason for having none."""

import importlib

import pytest

from tests.functions import table
from tests.functions import (
    test_functions as every_entry,  # noqa: F401 (fills the table)
)

NAMESPACES = (
    "fft",
    "image",
    "lax",
    "lax.linalg",
    "linalg",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "random",
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.spatial.transform",
    "scipy.special",
    "scipy.stats",
    "special",
)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_function_has_an_entry(namespace):
    missing = [
        name
        for name, function in table.public_functions(namespace).items()
        if id(function) not in table.covered()
    ]
    assert not missing


@pytest.mark.parametrize("name", sorted(table.EXCEPTIONS))
def test_exceptions_exist(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(f"stretto.{module}"), attribute)
