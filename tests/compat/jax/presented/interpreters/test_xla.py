"""The names of ``jax.interpreters``."""

import importlib

import numpy as np
import pytest

import stretto as st
from stretto.compat.jax.jaxprs import ad
from stretto.compat.jax.jaxprs.tables.named import primitive_of
from stretto.compat.jax.presented.interpreters import xla


def test_a_primitive_applied():
    assert float(xla.apply_primitive(primitive_of("sin"), 0.0)) == 0.0


def test_the_table_of_arrays():
    assert isinstance(xla.canonicalize_dtype_handlers[np.ndarray](np.ones(2)), st.Array)


@pytest.mark.parametrize("name", ["ad", "batching", "mlir", "partial_eval"])
def test_the_others_are_views(name):
    module = importlib.import_module(f"stretto.compat.jax.presented.interpreters.{name}")
    assert dir(module)
    if name == "ad":
        assert module.Zero is ad.Zero
