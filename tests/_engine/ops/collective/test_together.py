"""Sums of several operands at once; ``passes/test_merge_all_reduces`` has planned programs."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.effects import NamedAxis
from stretto._engine.core.types import array_type
from stretto._engine.ops.collective.together import TotalsTogether
from stretto.laws import c64, f32, f64, i32, law

BOTH = TotalsTogether((("i", 4),))


def sums(x):
    first, second = BOTH(x, x * x)
    return first * second


LAWS = [law(TotalsTogether, sums, t(4, 2), along="i") for t in (f32, f64, i32, c64)]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_types_and_effects():
    types = array_type((2,), np.dtype("f4")), array_type((), np.dtype("f4"))
    primitive = TotalsTogether((("x", 2), ("y", 3)))
    assert primitive.infer(*types) == types
    assert primitive.effects == {NamedAxis("x"), NamedAxis("y")}
    with pytest.raises(TypeError, match="one dtype"):
        primitive.infer(types[0], array_type((), np.dtype("i4")))


def test_along_two_axes():
    primitive = TotalsTogether((("x", 2), ("y", 3)))
    a = snp.arange(12.0).reshape(2, 3, 2)
    f = lambda row: primitive(row, row[0])
    inner = st.vmap(f, axis_name="y", out_axes=None)
    total, first = st.vmap(inner, axis_name="x", out_axes=None)(a)
    np.testing.assert_array_equal(total, a.sum((0, 1)))
    np.testing.assert_array_equal(first, a[..., 0].sum())


def test_what_all_share_is_a_multiple():
    f = st.vmap(BOTH, (0, None), axis_name="i", out_axes=None)
    total, multiple = f(snp.ones((4, 2)), snp.float32(3))
    np.testing.assert_array_equal(total, [4, 4])
    assert multiple == 12
