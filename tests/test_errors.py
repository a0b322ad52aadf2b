"""Errors under the names that users of JAX catch."""

import numpy as np
import pytest

import stretto as st
import stretto._engine.core.errors
import stretto.numpy as snp


def test_every_error_of_the_core_is_here():
    assert {*stretto._engine.core.errors.__all__} <= {*st.errors.__all__}


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


def test_what_is_not_there_says_what_to_do():
    with pytest.raises(AttributeError, match="no attribute 'new_ref': there are no mutable refer"):
        st.new_ref  # noqa: B018
    assert not hasattr(st, "Ref")
