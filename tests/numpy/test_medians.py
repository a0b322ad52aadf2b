"""Medians."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.array([[3.0, np.nan, 1.0, 7.0], [2.0, 2.0, 8.0, 5.0]], np.float32)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_are_numpys(name, axis, keepdims):
    want = getattr(np, name)(X, axis, keepdims=keepdims)
    ours = getattr(snp, name)
    np.testing.assert_allclose(ours(snp.asarray(X), axis, keepdims=keepdims), want)
    compiled = st.jit(lambda x: ours(x, axis, keepdims=keepdims))
    np.testing.assert_allclose(compiled(X), want)


def test_a_line_without_numbers_has_no_median():
    missing = snp.full((2, 3), np.nan)
    assert np.isnan(np.asarray(snp.nanmedian(missing, 1))).all()
    with pytest.raises(ValueError, match=r"median.* empty"):
        snp.median(snp.ones((0,)))


def test_the_slope_goes_to_the_elements_in_the_middle():
    slope = st.grad(snp.median)(snp.asarray([4.0, 1.0, 3.0, 9.0]))
    np.testing.assert_array_equal(slope, [0.5, 0.0, 0.5, 0.0])
