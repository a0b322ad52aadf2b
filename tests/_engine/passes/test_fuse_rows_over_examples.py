"""Rows that lie in stretches with others between: a channel over all examples, as in batch norm."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.graph import make_graph
from stretto._engine.core.program import check
from stretto._engine.kernels import kernels
from stretto._engine.ops.fused_rows import FusedRows
from stretto._engine.passes.fuse_rows import fuse_rows
from stretto._engine.passes.prepare import prepare

F = nn.functional
SHAPE = 8, 20, 7, 5


def normalized(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


def by_hand(x, w, b):
    mean, squares = x.mean((0, 2, 3)), (x * x).mean((0, 2, 3))
    scale = w / snp.sqrt(squares - mean * mean + 1e-5)
    return x * scale[:, None, None] + (b - mean * scale)[:, None, None]


def with_residual(x, w, b):
    return snp.maximum(normalized(x, w, b) + x, 0)


def with_statistics(x, w, b):
    y = normalized(x, w, b)
    return y + 0.1 * x.mean((0, 2, 3), keepdims=True)


def weighted(x, w, b):
    """Each example counts as much as its number says."""
    of_example = snp.arange(1.0, x.shape[0] + 1, dtype=x.dtype)[:, None, None, None]
    total = (x * of_example).sum((0, 2, 3), keepdims=True)
    return (x - total / of_example.sum()) * w[:, None, None] + b[:, None, None]


def of_places(x, w, b):
    """What differs by place is the same for all examples."""
    places = snp.arange(x[0].size, dtype=x.dtype).reshape(x.shape[1:]) / x[0].size
    return normalized(x + places, w, b)


def greatest(x, w, b):
    return (x - x.max((0, 2, 3), keepdims=True)) * w[:, None, None] + b[:, None, None]


def sequences(x, w, b):
    x = x.reshape(*x.shape[:2], -1)
    return normalized(x, w, b)


FUNCTIONS = {
    f.__name__: f
    for f in (
        normalized,
        by_hand,
        with_residual,
        with_statistics,
        weighted,
        of_places,
        greatest,
        sequences,
    )
}


def drawn(shape, dtype="float64"):
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((2, shape[-3]))
    return [a.astype(dtype) for a in (rng.standard_normal(shape) * 2 + 1, w, b)]


def total_of(f):
    """A sum with unequal weights, of which all derivatives differ."""

    def total(*args):
        y = f(*args)
        return (y * snp.cos(snp.arange(y.size, dtype=y.dtype)).reshape(y.shape)).sum()

    return total


def calls(f, *args):
    program = fuse_rows(prepare(make_graph(f)(*args)))
    check(program)
    return sum([isinstance(e.primitive, FusedRows) for e in program.equations])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_one_call_and_its_gradients_another(name):
    f, args = FUNCTIONS[name], drawn(SHAPE, "float32")
    assert calls(f, *args) == 1
    both = lambda *args: st.vjp(f, *args)[1](f(*args))
    assert calls(both, *args) in (1, 2)


@pytest.mark.parametrize(
    ("shape", "found"),
    [((16, 20, 4, 4), 1), ((15, 20, 4, 4), 0), ((32, 20, 3, 5), 0), ((16, 15, 4, 4), 0)],
)
def test_from_which_sizes_on(shape, found):
    assert calls(normalized, *drawn(shape, "float32")) == found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [SHAPE, (1, 33, 8, 16), (9, 3, 40, 40), (40, 130, 1, 1)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_keeps_values_and_derivatives(name, shape, dtype):
    f, args = FUNCTIONS[name], drawn(shape)
    run = lambda: st.jit(lambda *args: (f(*args), *st.grad(total_of(f), (0, 1, 2))(*args)))
    with st.enable_x64(), st.config(kernels=False):
        expected = [np.asarray(a) for a in run()(*args)]
    with st.enable_x64():
        got = run()(*[a.astype(dtype) for a in args])
    rtol = 2e-4 if dtype == "float32" else 1e-10
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_members_have_rows_of_their_own(name):
    f, members = FUNCTIONS[name], [drawn(SHAPE, "float32") for _ in range(3)]
    stacked = [
        np.stack([k + a for k, a in enumerate(arrays)]) for arrays in zip(*members, strict=True)
    ]
    together = lambda f: st.vmap(lambda *args: (f(*args), *st.grad(total_of(f), (0, 1, 2))(*args)))
    with st.config(plan="at once"):
        got = st.jit(together(f))(*stacked)
    for k in range(3):
        args = [a[k] for a in stacked]
        expected = st.jit(lambda *args: (f(*args), *st.grad(total_of(f), (0, 1, 2))(*args)))(*args)
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one[k], other, rtol=1e-4, atol=1e-3)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_channels_do_not_see_what_is_not_finite_in_others():
    x, w, b = drawn(SHAPE, "float32")
    x[2, 3, 4, 1], x[0, 7, 0, 0] = np.nan, np.inf
    got = np.asarray(st.jit(with_residual)(x, w, b))
    with st.config(kernels=False):
        expected = np.asarray(st.jit(lambda *args: with_residual(*args))(x, w, b))  # noqa: PLW0108
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    others = [k for k in range(SHAPE[1]) if k not in (3, 7)]
    assert np.isfinite(got[:, others]).all()
    np.testing.assert_allclose(got[:, others], expected[:, others], rtol=1e-4, atol=1e-5)
