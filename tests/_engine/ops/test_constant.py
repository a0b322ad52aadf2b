"""Constant: the laws, and arrays that derived programs hold."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.ops.constant import Constant, Held
from stretto.laws import f32, f64, law


def held(array):
    return Constant(Held(array, array_type(array.shape, array.dtype)))


ROW = np.array([1.0, -2.0, 0.5], np.float32)
LAWS = [
    law(Constant, lambda x: x * held(ROW)(), f32(2, 3)),
    law(Constant, lambda x: x * held(ROW.astype(np.float64))(), f64(3)),
    law(Constant, lambda x: x + held(np.zeros((0, 3), np.float32))(), f32(0, 3)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize(
    "array",
    [
        np.array([[True, False]]),
        np.array([[1, -2], [3, 4]], np.int8),
        np.array([2**31], np.uint32),
        np.array([1 + 2j, np.nan], np.complex64),
        np.array([np.inf, -0.0, 1e-40], np.float32),
        np.array([1.5, np.nan], ml_dtypes.bfloat16),
        np.array(3.25, np.float16),
    ],
    ids=lambda array: str(array.dtype),
)
def test_every_element_is_written_exactly(array):
    compiled = np.asarray(st.jit(held(array))())
    assert compiled.dtype == array.dtype
    assert compiled.tobytes() == np.asarray(held(array)()).tobytes() == array.tobytes()


def test_a_rule_may_use_an_array_of_its_own():
    @st.custom_jvp
    def f(x):
        return snp.sin(x)

    slopes = np.array([1.0, 2.0, 3.0], np.float32)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * snp.array(slopes)))
    total = st.jit(lambda x: f(x).sum())
    np.testing.assert_array_equal(st.grad(total)(snp.ones(3)), slopes)
    each = st.jit(st.vmap(st.grad(total)))(snp.ones((2, 3)))
    np.testing.assert_array_equal(each, [slopes, slopes])
