"""Partitions: JAX's order, several places, and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.array([6, 8, 4, 3, 1, 9, 7, 5, 2, 3], np.int32)


def test_the_order_is_that_of_jax():
    both = lambda x: (snp.partition(x, 4), snp.argpartition(x, 4))
    for values, places in (both(snp.array(X)), st.jit(both)(X)):
        assert values.tolist() == [1, 2, 3, 3, 4, 9, 8, 7, 6, 5]
        assert places.tolist() == [4, 8, 3, 9, 2, 0, 1, 5, 6, 7]
    assert snp.partition(snp.array(X), (2, -1)).tolist() == sorted(X)
    assert snp.argpartition(snp.array([[2, 1], [0, 5]]), 0, axis=None).tolist() == [2, 0, 1, 3]
    assert snp.array(X).argpartition(0)[0] == 4


@pytest.mark.parametrize("kth", [0, 1234, -1, (7, 4000)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16])
def test_many_elements_are_parted(kth, dtype):
    x = np.random.default_rng(0).integers(-50, 50, (2, 5000)).astype(dtype)
    if dtype is not np.int32:
        x[0, :3], x[1, 4] = np.nan, -0.0
    both = lambda v: (snp.partition(v, kth), snp.argpartition(v, kth))
    for values, places in (both(snp.array(x)), st.jit(both)(snp.array(x))):
        assert (values.dtype, places.dtype) == (dtype, np.int32)
        assert np.sort(places).tolist() == [list(range(5000))] * 2
        for parted in (np.asarray(values), np.take_along_axis(x, np.asarray(places), 1)):
            ordered = np.sort(x)
            np.testing.assert_array_equal(np.sort(parted), ordered)
            for k in [kth] if isinstance(kth, int) else kth:
                np.testing.assert_array_equal(parted[:, k], ordered[:, k])
                k %= 5000
                np.testing.assert_array_equal(np.sort(parted[:, :k]), ordered[:, :k])


def test_messages():
    with pytest.raises(ValueError, match="partition: kth 10 is out of bounds for an axis of 10"):
        snp.partition(snp.array(X), 10)
    with pytest.raises(TypeError, match="argpartition: kth must be an integer"):
        snp.argpartition(snp.array(X), 1.5)
    with pytest.raises(NotImplementedError, match="order= has no meaning"):
        snp.partition(snp.array(X), 1, order="a")
