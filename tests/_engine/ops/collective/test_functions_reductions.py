"""Sums, means and extrema across examples: trees, numbers, dtypes, ties, groups."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax

RNG = np.random.default_rng(1)
X = RNG.normal(size=(4, 4, 8)).astype(np.float32)
GROUPS = [[0, 3], [2, 1]]
UNEQUAL = [[0, 3, 2], [1]]


def test_trees():
    tree = {"a": X, "b": (X[:, 0, 0], np.arange(4))}
    got = st.vmap(lambda t: lax.psum(t, "i"), axis_name="i", out_axes=None)(tree)
    np.testing.assert_allclose(got["a"], X.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got["b"][0], X[:, 0, 0].sum(), rtol=1e-5, atol=1e-6)
    assert int(got["b"][1]) == 6
    assert lax.psum((), ()) == ()


def test_numbers_are_counted_and_stay_numbers():
    seen = []

    def f(x):
        seen.extend([lax.psum(1, "i"), lax.psum(2.5, "i"), lax.psum(1j, "i"), lax.axis_size("i")])
        seen.extend([lax.pmean(1, "i"), lax.psum(True, "i")])
        return x

    st.jit(st.vmap(f, axis_name="i"))(X)
    assert seen[:5] == [4, 10.0, 4j, 4, 1.0]
    assert [type(x) for x in seen[:5]] == [int, float, complex, int, float]
    assert seen[5].dtype == np.int32


def test_dtypes():
    over = lambda f: st.vmap(f, axis_name="i")
    truth = np.array([True, False, True])
    assert over(lambda x: lax.psum(x, "i"))(truth).tolist() == [2, 2, 2]
    assert over(lambda x: lax.pmax(x, "i"))(truth).tolist() == [True] * 3
    assert over(lambda x: lax.pmean(x, "i"))(truth).dtype == np.float32
    narrow = np.array([100, 100, 100], np.int8)
    assert over(lambda x: lax.psum(x, "i"))(narrow).tolist() == [44] * 3
    assert over(lambda x: lax.pmean(x, "i"))(np.arange(4)).tolist() == [1.5] * 4
    assert over(lambda x: lax.psum(x * 1.0, "i"))(narrow).dtype == np.float32
    weak = st.make_graph(over(lambda x: lax.psum(2.0 * snp.array(1.0), "i") + x))(narrow)
    assert weak.out_types[0].dtype == np.float32


def test_greatest_and_least_with_ties_and_nan():
    x = np.array([1.0, 3.0, 3.0, np.nan], np.float32)
    assert np.isnan(st.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(x)).all()
    for f in (
        st.vmap(st.grad(lambda x: lax.pmax(x, "i") / 3), axis_name="i"),
        st.grad(lambda x: st.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(x).mean()),
    ):
        for run in (f, st.jit(f)):
            np.testing.assert_allclose(run(x[:3]), [0, 0.5, 0.5])


@pytest.mark.parametrize(
    "f", [lambda x: lax.pmax(x, "i"), lambda x: lax.pmin(x, "i"), lambda x: lax.pmean(x, "i")]
)
def test_composed_derivatives_within_are_those_outside(f):
    bent = lambda x: snp.sin(f(x * x))
    whole = st.vmap(bent, axis_name="i")
    ct = RNG.normal(size=X.shape).astype(np.float32)
    order = lambda f, x, c: st.jvp(lambda x: st.vjp(f, x)[1](c)[0], (x,), (c,))
    got = st.jit(st.vmap(lambda x, c: order(bent, x, c), axis_name="i"))(X, ct)
    for a, b in zip(got, order(whole, X, ct), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_groups_of_several_sizes(name):
    one = lambda x: getattr(lax, f"p{name}")(x, "i", axis_index_groups=UNEQUAL)
    want = np.empty_like(X)
    for group in UNEQUAL:
        want[group] = getattr(X[group], name)(0)
    np.testing.assert_allclose(st.vmap(one, axis_name="i")(X), want, rtol=1e-5, atol=1e-6)
    counts = st.vmap(lambda x: lax.psum(1, "i", axis_index_groups=UNEQUAL), axis_name="i")(X)
    assert counts.tolist() == [3, 1, 3, 3]
    sizes = []
    st.vmap(lambda x: sizes.append(lax.psum(1, "i", axis_index_groups=GROUPS)), axis_name="i")(X)
    assert sizes == [2]
