"""Parts of arrays of fixed size, as long as what varies: tables of positions, and masks."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

TABLE = snp.arange(12.0).reshape(6, 2)
MASK = snp.tril(snp.ones((8, 8), bool))


@pytest.mark.parametrize(
    "f",
    [
        lambda t, x: x + t[: x.shape[0]],
        lambda t, x: x * t[-x.shape[0] :],
        lambda t, x: x + TABLE[: x.shape[0]],
        lambda t, x: snp.where(MASK[: x.shape[0], : x.shape[0]], x @ x.T, 0),
        lambda t, x: t[x.shape[0] :].sum() + x.sum(),
        lambda t, x: t[x.shape[0] - 1] + x,
        lambda t, x: t[: x.shape[0]][::-1] + x,
        lambda t, x: t.at[: x.shape[0]].multiply(x),
    ],
    ids=["first", "last", "captured", "mask", "rest", "one", "reversed", "written"],
)
def test_as_for_each_length_alone(f):
    g = st.jit(f, dynamic_axes=(None, {0: "n"}))
    slope = lambda f: st.grad(lambda t, x: (f(t, x) ** 2).sum(), (0, 1))
    slopes = st.jit(slope(f), dynamic_axes=(None, {0: "n"}))
    for n in (1, 3, 6, 2):
        x = snp.linspace(1, 2, 2 * n).reshape(n, 2)
        np.testing.assert_allclose(g(TABLE, x), f(TABLE, x), rtol=1e-6)
        for got, want in zip(slopes(TABLE, x), slope(f)(TABLE, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_ragged_examples_each_take_their_part():
    parts = [snp.ones((n, 2)) for n in (3, 1, 6)]
    f = lambda x: ((x + TABLE[: x.shape[0]]) ** 2).sum()
    got = st.vmap(f)(st.ragged(parts))
    np.testing.assert_allclose(got, [f(x) for x in parts])


def test_a_table_that_is_too_short():
    f = lambda x: x + TABLE[: x.shape[0]]
    with pytest.raises(ValueError, match="do not broadcast"):
        st.jit(f, dynamic_axes=({0: "n"},))(snp.ones((7, 2)))
    with pytest.raises(st.errors.SizeError, match="n <= 6 is not the same for all examples"):
        st.vmap(f)(st.ragged([snp.ones((7, 2)), snp.ones((3, 2))]))


def test_the_rest_of_a_table_may_be_empty():
    f = st.jit(lambda x: TABLE[x.shape[0] :], dynamic_axes=({0: "n"},))
    assert [f(snp.ones(n)).shape for n in (4, 6, 7)] == [(2, 2), (0, 2), (0, 2)]
