"""Products, chains and powers of matrices against NumPy."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy import linalg
from stretto.numpy.linalg.matrix_products import _cheapest

RNG = np.random.default_rng(0)


def test_those_of_the_array_api_take_the_last_two_axes():
    x = RNG.normal(size=(4, 2, 3)).astype(np.float32)
    np.testing.assert_allclose(linalg.trace(x, offset=1), np.linalg.trace(x, offset=1), rtol=1e-6)
    np.testing.assert_array_equal(linalg.diagonal(x, offset=-1), np.linalg.diagonal(x, offset=-1))
    np.testing.assert_array_equal(linalg.matrix_transpose(x), np.linalg.matrix_transpose(x))
    np.testing.assert_array_equal(linalg.outer(np.arange(2), np.arange(3)), [[0, 0, 0], [0, 1, 2]])
    assert linalg.matmul is snp.matmul
    assert linalg.tensordot is snp.tensordot
    assert linalg.vecdot is snp.vecdot


@pytest.mark.parametrize(
    "shapes, axis", [([(3,), (3,)], -1), ([(2, 3), (3,)], -1), ([(4, 3, 2), (4, 3, 2)], 1)], ids=str
)
def test_cross(shapes, axis):
    x, y = (RNG.normal(size=s).astype(np.float32) for s in shapes)
    want = np.linalg.cross(x, y, axis=axis)
    np.testing.assert_allclose(linalg.cross(x, y, axis=axis), want, rtol=1e-5, atol=1e-6)
    f = st.jit(lambda x, y: linalg.cross(x, y, axis=axis))
    np.testing.assert_allclose(f(x, y), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, -2])
def test_powers(n):
    x = (RNG.normal(size=(2, 3, 3)) + 2 * np.eye(3)).astype(np.float32)
    want = np.linalg.matrix_power(x, n)
    np.testing.assert_allclose(linalg.matrix_power(x, n), want, rtol=1e-4, atol=1e-4)
    assert linalg.matrix_power(snp.eye(2, dtype=int), 0).dtype == np.int32


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (3, 4)],
        [(2, 30), (30, 1), (1, 40), (40, 5)],
        [(3,), (3, 4), (4, 2)],
        [(2, 3), (3, 4), (4,)],
        [(3,), (3, 4), (4,)],
        [(3,), (3,)],
    ],
    ids=str,
)
def test_chains(shapes):
    values = [RNG.normal(size=s).astype(np.float32) for s in shapes]
    want = np.linalg.multi_dot(values)
    got = linalg.multi_dot(values)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_a_chain_is_multiplied_where_that_is_least_work():
    # Of sizes 2x30, 30x1, 1x40, 40x5: (ab)(cd), and of the classic example a((bc)d)...
    assert _cheapest([2, 30, 1, 40, 5])[0, 3] == 1
    assert _cheapest([10, 100, 5, 50])[0, 2] == 1
    assert _cheapest([30, 35, 15, 5, 10, 20, 25])[0, 5] == 2  # Cormen and others


def test_refusals():
    with pytest.raises(ValueError, match=r"outer: expected arrays of rank 1, got float32\[2,2\]"):
        linalg.outer(snp.ones((2, 2)), snp.ones(2))
    with pytest.raises(ValueError, match=r"cross: both must have size 3 along axis 0"):
        linalg.cross(snp.ones(2), snp.ones(2))
    with pytest.raises(ValueError, match=r"cross: both must have size 3"):
        linalg.cross(snp.ones(3), snp.ones(1))
    with pytest.raises(ValueError, match="multi_dot: arrays 0 and 1 do not match"):
        linalg.multi_dot([snp.ones((2, 3)), snp.ones((2, 3))])
    with pytest.raises(ValueError, match="multi_dot: expected two arrays or more, got 1"):
        linalg.multi_dot([snp.ones((2, 3))])
    with pytest.raises(ValueError, match="multi_dot: expected matrices, array 1"):
        linalg.multi_dot([snp.ones((2, 3)), snp.ones(3), snp.ones((3, 2))])
    with pytest.raises(ValueError, match="matrix_power: expected square matrices"):
        linalg.matrix_power(snp.ones((2, 3)), 2)
