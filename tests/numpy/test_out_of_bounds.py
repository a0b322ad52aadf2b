"""What is done about indices that are out of bounds."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_reads_clamp():
    x = snp.array([0, 2, 4, 6])
    for index in (10000, np.array(10000), snp.array([10000])):
        assert int(x[index].reshape(())) == 6
        assert int(st.jit(lambda i: x[i])(index).reshape(())) == 6
    assert int(x[-10000]) == 0
    assert int(st.jit(lambda x: x[10000])(x)) == 6


def test_fill_reads_nan_or_the_least_integer():
    at = np.array([0, 7], np.int32)
    for read in (lambda x, i: x.at[i].get(mode="fill"), lambda x, _: x.at[at].get(mode="fill")):
        for fun in (read, st.jit(read)):
            np.testing.assert_array_equal(fun(snp.array([1.5, 2.5]), at), [1.5, np.nan])
            np.testing.assert_array_equal(fun(snp.array([1, 2]), at), [1, np.iinfo(np.int32).min])
    assert np.isnan(float(snp.zeros(3).at[3].get(mode="fill")))
    assert float(snp.zeros(3).at[3].get(mode="fill", fill_value=4)) == 4
    np.testing.assert_array_equal(
        snp.zeros((2, 3)).at[:, -4].get(mode="drop", fill_value=1.0), [1, 1]
    )


def test_unknown_mode():
    with pytest.raises(ValueError, match="mode must be one of 'clip', 'fill'"):
        snp.zeros(3).at[0].get(mode="wrap")
