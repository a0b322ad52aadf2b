"""Errors under the names that users of JAX catch."""

import numpy as np
import pytest

import stretto as st
import stretto._engine.core.errors
import stretto.numpy as snp


def test_every_error_of_the_core_is_here():
    assert {name for name in vars(stretto._engine.core.errors) if name.endswith("Error")} <= {
        *st.errors.__all__
    }


@pytest.mark.parametrize(
    "kind, use",
    [
        (st.errors.TracerBoolConversionError, lambda x: x if x > 0 else -x),
        (st.errors.TracerIntegerConversionError, lambda x: [1, 2][x.astype(int)]),
        (st.errors.TracerArrayConversionError, np.sin),
        (st.errors.ConcretizationTypeError, float),
        (st.errors.NonConcreteBooleanIndexError, lambda x: snp.ones(3)[x > snp.zeros(3)]),
    ],
)
def test_uses_of_traced_values(kind, use):
    with pytest.raises(kind):
        st.jit(use)(1.0)


def test_unexpected_tracers():
    kept = []
    st.jit(kept.append)(1.0)
    with pytest.raises(st.errors.UnexpectedTracerError, match="outlived"):
        kept[0] + 1


def test_references_raise_what_python_would():
    ref = st.new_ref(1)
    for kind in (TypeError, ValueError, st.errors.RefError):
        with pytest.raises(kind, match="the dtype of the reference"):
            ref[...] = 1.5


def test_derivatives_that_a_custom_rule_does_not_give():
    def scaled(w):
        f = st.custom_vjp(lambda x: w * x)
        f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
        return f(2.0)

    for kind in (TypeError, st.errors.PerturbationError):
        with pytest.raises(kind, match="takes from outside"):
            st.grad(scaled)(3.0)
