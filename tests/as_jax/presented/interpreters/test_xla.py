"""The names of ``jax.interpreters``."""

import importlib

import pytest

from stretto.as_jax.jaxprs import ad
from stretto.as_jax.jaxprs.tables.named import primitive_of
from stretto.as_jax.presented.interpreters import xla


def test_a_primitive_applied():
    assert float(xla.apply_primitive(primitive_of("sin"), 0.0)) == 0.0


@pytest.mark.parametrize("name", ["ad", "batching", "mlir", "partial_eval"])
def test_the_others_are_views(name):
    module = importlib.import_module(f"stretto.as_jax.presented.interpreters.{name}")
    assert dir(module)
    if name == "ad":
        assert module.Zero is ad.Zero
