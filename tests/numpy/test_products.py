from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

A = np.arange(6, dtype=np.float32).reshape(2, 3)
V, W = np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0, 5.0, 6.0], np.float32)
COMPLEX = np.array([1 + 2j, -3j, 0.5], np.complex64)


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("dot", V, W),
        ("dot", A, V),
        ("matmul", A, A.T.copy()),
        ("matmul", V, W),
        ("inner", A, A),
        ("outer", V, W),
        ("vdot", COMPLEX, COMPLEX[::-1].copy()),
        ("tensordot", np.ones((2, 3, 4), np.float32), np.ones((3, 4, 5), np.float32)),
        ("vecdot", A, V),
        ("vecdot", COMPLEX, COMPLEX),
    ],
)
def test_as_numpy(agree, name, x, y):
    agree(name, x, y, rtol=1e-5)


def test_vecdot_along_another_axis():
    got = snp.vecdot(snp.array(A), snp.array(A), axis=0)
    np.testing.assert_array_equal(got, (A * A).sum(0))
    with pytest.raises(ValueError, match="sizes along axis -1 differ"):
        snp.vecdot(snp.ones(2), snp.ones(3))


def test_the_operator():
    x, y = snp.array(A), snp.array(V)
    np.testing.assert_array_equal(x @ y, A @ V)
    np.testing.assert_array_equal(A @ y, A @ V)
    np.testing.assert_array_equal(st.vmap(lambda r: r @ y)(x), A @ V)


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        (((3,), (3,)), {}),
        (((4, 3), (3,)), {}),
        (((3, 4), (4, 3)), {"axisa": 0, "axisc": 0}),
        (((3, 4), (3, 4)), {"axis": 0}),
    ],
    ids=["vectors", "rows", "axes", "axis"],
)
def test_cross_as_numpy(shapes, axes):
    x, y = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in shapes)
    np.testing.assert_allclose(snp.cross(x, y, **axes), np.cross(x, y, **axes), rtol=1e-5)


def test_cross_in_the_plane():
    assert int(snp.cross(snp.array([1, 2]), snp.array([3, 4]))) == -2
    np.testing.assert_array_equal(snp.cross(snp.array([1, 2, 3]), snp.array([3, 4])), [-12, 9, -2])
    with pytest.raises(ValueError, match="2 or 3 elements"):
        snp.cross(snp.ones(4), snp.ones(3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: snp.matvec(snp.ones(2), snp.ones(2)), "rank 2 and 1 or more"),
        (lambda: snp.matvec(snp.ones((2, 3)), snp.ones(2)), "sizes of the last axes differ"),
        (lambda: snp.vecmat(snp.ones(2), snp.ones((3, 2))), "differ in size"),
    ],
    ids=range(3),
)
def test_stacks_that_do_not_fit(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_settings_of_products_are_keywords():
    x = snp.ones((2, 2), "bfloat16")
    for function in (snp.dot, snp.matmul, snp.inner, snp.vdot, snp.vecdot):
        out = function(x, x, precision="highest", preferred_element_type=snp.float32)
        assert out.dtype == snp.float32
    with pytest.raises(TypeError, match="out_sharding must be a sharding"):
        snp.dot(x, x, out_sharding="x")
