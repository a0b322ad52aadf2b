"""The names of ``jax.interpreters``, and files whose frames tracebacks leave out."""

import sys

import numpy as np
import pytest

import stretto as st
from stretto.compat.jax import runtime
from stretto.compat.jax.jaxprs import own
from stretto.compat.jax.jaxprs.operations import primitive_of
from stretto.compat.jax.modules import module_of


def test_a_primitive_applied():
    assert float(runtime.apply_primitive(primitive_of("sin"), 0.0)) == 0.0


def test_the_table_of_arrays():
    assert isinstance(runtime.canonicalize_dtype_handlers[np.ndarray](np.ones(2)), st.Array)


@pytest.mark.parametrize("name", ["ad", "batching", "mlir", "partial_eval"])
def test_the_others_are_views(name):
    module = module_of(f"interpreters.{name}")
    assert dir(module)
    if name == "ad":
        assert module.Zero is own.Zero


def test_excluded_files(monkeypatch):
    monkeypatch.setattr(runtime, "_exclude_paths", [])
    assert runtime.include_frame(sys._getframe())
    runtime.register_exclusion(__file__)
    assert not runtime.include_frame(sys._getframe())


def test_a_boundary_is_the_function_itself():
    assert runtime.api_boundary(max, repro_api_name="max")(1, 2) == 2
