"""What the table of functions cannot say of products: groups along every kind of axis, errors."""

import numpy as np
import pytest

from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto.lax import products as lax

RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=s).astype(np.float32) for s in ((5, 4, 3), (2, 5, 3, 6)))
FREE = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (1,))), (1,), (0,))
SUMMED = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (2,), ())
SHARED = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (0,), ())


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_groups_of_each_kind_of_axis(run):
    sizes = RNG.integers(0, 3, (5, 2))
    out = np.asarray(run(lambda *a: lax.ragged_dot_general(*a, FREE))(X, Y, sizes))
    for b, (first, second) in enumerate(sizes):
        group = [0] * first + [1] * second
        for m in range(4):
            want = X[b, m] @ Y[group[m], b] if m < len(group) else np.zeros(6)
            np.testing.assert_allclose(out[b, m], want, rtol=1e-5, atol=1e-5)
    f = run(lambda *a: lax.ragged_dot_general(*a, SUMMED))
    out = np.asarray(f(X, X, np.array([1, 2])))
    np.testing.assert_allclose(out[0], X[..., :1] @ X[..., :1].swapaxes(1, 2), rtol=1e-5)
    np.testing.assert_allclose(out[1], X[..., 1:] @ X[..., 1:].swapaxes(1, 2), rtol=1e-5, atol=1e-5)
    whole = lax.ragged_dot_general(X, X, np.array([2, 2]), SHARED)
    np.testing.assert_allclose(whole, X @ X.swapaxes(1, 2), rtol=1e-5, atol=1e-5)


def test_a_gradient_of_examples_with_groups_of_their_own():
    sizes = np.array([[1, 2], [4, 0], [0, 1]])

    def loss(w, x, sizes):
        return (lax.ragged_dot(x, w, sizes) ** 2).sum()

    w, x = Y[:, 0, :, :2], X[:3]
    mapped = jit(vmap(grad(loss), in_axes=(None, 0, 0)))(w, x, sizes)
    for i in range(3):
        np.testing.assert_allclose(mapped[i], grad(loss)(w, x[i], sizes[i]), rtol=1e-4, atol=1e-4)


def test_refusals():
    groups = np.array([1, 2])
    with pytest.raises(NotImplementedError, match="group_offset must be None"):
        lax.ragged_dot(X[0], Y[:, 0], groups, group_offset=groups)
    with pytest.raises(TypeError, match="group_sizes must be integers"):
        lax.ragged_dot(X[0], Y[:, 0], np.ones(2))
    with pytest.raises(ValueError, match=r"group_sizes must have shape \[g\] or \['g'\]"):
        lax.ragged_dot(X[0], Y[:, 0], np.ones((3, 2), int))
    with pytest.raises(ValueError, match="rhs_group_dimensions must have 1 axis"):
        lax.ragged_dot_general(X, Y, groups, FREE._replace(rhs_group_dimensions=()))
    with pytest.raises(ValueError, match="operands must be matrices or vectors"):
        lax.dot(X, X)
    with pytest.raises(ValueError, match="operands of one rank, 2 or more"):
        lax.batch_matmul(X, X[0])
    with pytest.raises(ValueError, match="except along contracted axes"):
        lax.scaled_dot(X, X.swapaxes(1, 2), lhs_scale=np.ones((5, 4, 2), np.float32))
    with pytest.raises(ValueError, match="give dimension_numbers"):
        lax.scaled_dot(X[0, 0], X[0, 0])
