"""Derivatives and maps of parts of graphs."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.torch.table.aten_subgraphs import TABLE

X, Y = snp.array([0.1, 0.2, 0.3]), snp.array([1.0, 2.0, 3.0])


def product(x, y):
    return (snp.sin(x) * y,)


def test_gradients():
    grad = TABLE["stretto.grad.default"]
    (ones,) = grad(product, (Y,), (X,), (None,))
    np.testing.assert_allclose(ones, np.cos(X) * Y, rtol=1e-6)
    (given,) = grad(product, (Y,), (X,), (2 * Y,))
    np.testing.assert_allclose(given, np.cos(X) * Y * 2 * Y, rtol=1e-6)


def test_tangents():
    (moved,) = TABLE["stretto.jvp.default"](product, (Y,), (X,), (2 * Y,))
    np.testing.assert_allclose(moved, np.cos(X) * Y * 2 * Y, rtol=1e-6)


def test_maps():
    vmap = TABLE["stretto.vmap.default"]
    rows = snp.arange(6.0).reshape(2, 3)
    (out,) = vmap(lambda x, y: (x * y,), (Y,), (), (rows,), (0,), (1,), "error")
    np.testing.assert_array_equal(out, (rows * Y).T)
    noise = lambda x: (st.random.normal(st.random.next_key("test"), x.shape),)
    with st.nn.keys(st.random.key(0)):
        (own,) = vmap(noise, (), (), (rows,), (0,), (0,), "different")
        (shared,) = vmap(noise, (), (), (rows,), (0,), (0,), "same")
    assert (own[0] != own[1]).all() and (shared[0] == shared[1]).all()


def test_marks_of_inputs():
    np.testing.assert_array_equal(TABLE["stretto.example.default"](snp.eye(2), 1), [1, 0])
    assert TABLE["stretto.fresh.default"](X) is X
