"""Between what is the same along an axis and what varies along it."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.collective.primitives import PSum
from stretto._engine.ops.collective.varying import PSame, PSumSame, PVary
from stretto.laws import bf16, c64, f32, f64, i32, law, u32


def summed(x):
    return PVary("i", 4)(PSumSame("i", 4)(x))


def summed_and_taken(x):
    return PVary("i", 4)(PSame("i", 4)(PSum("i", 4)(x)))


LAWS = [
    *(law(PVary, summed, t(4, 2), along="i") for t in (f32, f64, i32, u32, c64)),
    *(law(PSumSame, summed, t(4, 2), along="i") for t in (f32, f64, bf16, i32, u32, c64)),
    *(law(PSame, summed_and_taken, t(4, 2), along="i") for t in (f32, f64, c64)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_what_they_give():
    x = snp.arange(4.0)
    total = st.vmap(PSumSame("i", 4), axis_name="i", out_axes=None)(x)
    first = st.vmap(PSame("i", 4), axis_name="i", out_axes=None)
    assert (float(total), float(first(x + 3))) == (6, 3)
    assert first(x > 5).dtype == bool and not bool(first(x > 5))
    every = st.vmap(PVary("i", 4), axis_name="i", axis_size=4, in_axes=None)(snp.ones(2))
    np.testing.assert_array_equal(every, np.ones((4, 2)))
