""""""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_negative_integers_are_out_of_bounds_where_they_do_not_wrap():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    off = {"wrap_negative_indices": False}
    nan = np.nan
    places = np.array([-1, 1])

    def every(x, i, j):
        return (
            x.at[i].get(**off),
            x.at[j, -2:].get(mode="fill", **off),
            x.at[j].get(**off),
            x[0].at[j].set(9, **off),
            x[0].at[j].add(9, mode="clip", **off),
            x[0].at[i].apply(lambda v: v + 9, **off),
            x[0].at[j].divide(2, **off),
            x[0].at[::-1].get(**off),
            x[0].at[-2:].set(9, **off),
        )

    wanted = (
        [0, 1, 2, 3],
        [[nan, nan], [6, 7]],
        [[0, 1, 2, 3], [4, 5, 6, 7]],
        [0, 9, 2, 3],
        [9, 10, 2, 3],
        [0, 1, 2, 3],
        [0, 0.5, 2, 3],
        [3, 2, 1, 0],
        [0, 1, 9, 9],
    )
    static = st.jit(lambda x: every(x, -1, places))
    for got in (every(snp.array(x), -1, places), static(x), st.jit(every)(x, -1, places)):
        for one, want in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(one, want)


def test_a_negative_integer_that_does_not_wrap_may_raise():
    x = snp.zeros(3)
    with pytest.raises(IndexError, match="index -1 is out of bounds for axis 0 with size 3"):
        x.at[-1].get(mode="raise", wrap_negative_indices=False)
    with pytest.raises(IndexError, match="index -4 is out of bounds for axis 0 with size 3"):
        x.at[-4].set(1, mode="raise")
    with pytest.raises(TypeError, match="out_sharding must be a sharding"):
        x.at[0].set(1, out_sharding="split")
    with pytest.raises(TypeError, match="out_sharding must be a sharding"):
        x.at[0].get(out_sharding="split")


def test_lists_stand_for_arrays_in_a_tuple():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    indices = [
        (slice(None), [0, 2]),
        ((0, 1), (0, 1)),
        (slice(None), []),
        (..., [True, False, True, True]),
        (0, [[0], [1]], range(2)),
    ]
    for index in indices:
        want = x[index]
        updated = x.copy()
        updated[index] += 1
        for got in (snp.array(x)[index], st.jit(lambda x, index=index: x[index])(x)):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(snp.array(x).at[index].add(1), updated)
    traced = st.jit(lambda x, i: x[:, [i, 2]])(x, 0)
    np.testing.assert_array_equal(traced, x[:, [0, 2]])


def test_an_empty_mask_fits_as_it_does_in_numpy():
    x, mask = np.ones((2, 3), np.float32), np.zeros(0, bool)
    assert snp.array(x)[mask].shape == st.jit(lambda x: x[mask])(x).shape == x[mask].shape


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
