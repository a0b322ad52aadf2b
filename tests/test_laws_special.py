"""Special values, and the check that compiled code agrees there with eager code."""

import ml_dtypes
import numpy as np
import pytest

import stretto.numpy as snp
from stretto.laws import check_special, special_pairs, special_values


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
def test_floats_have_both_zeros_infinities_nan_and_the_ends_of_the_range(dtype):
    x = special_values(dtype)
    assert x.dtype == dtype
    assert {False, True} == set(np.signbit(x[x == 0]).tolist())
    assert np.isnan(x).any() and np.isposinf(x).any() and np.isneginf(x).any()
    assert ml_dtypes.finfo(dtype).max in x and ml_dtypes.finfo(dtype).tiny in x


def test_integers_have_both_ends():
    x = special_values("uint8")
    assert x.dtype == np.uint8 and {0, 255} <= set(x.tolist())


def test_complex_values_are_finite():
    assert np.isfinite(special_values("complex64")).all()


def test_pairs_are_all_pairs():
    x, y = special_pairs("int8")
    values = special_values("int8").tolist()
    assert set(zip(x.tolist(), y.tolist(), strict=True)) == {(a, b) for a in values for b in values}


def test_functions_that_agree_pass():
    check_special({"abs": snp.abs, "add": lambda x: x + x}, special_values("float32"))


def test_what_differs_is_named_with_its_argument():
    traced = []

    def f(x):
        traced.append(0)
        return x + 1 if len(traced) == 1 else x + 2  # the first call is the trace

    with pytest.raises(AssertionError, match=r"f\(3\): compiled 4, eager 5"):
        check_special({"f": f}, np.array([3], np.int32))


def test_the_sign_of_zeros_counts():
    calls = []

    def f(x):
        calls.append(0)
        return -x if len(calls) == 1 else x

    with pytest.raises(AssertionError, match=r"f\(0.0\): compiled -0.0, eager 0.0"):
        check_special({"f": f}, np.zeros(1, np.float32))
