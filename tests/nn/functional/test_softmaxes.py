"""Softmax and its relatives: the definition, extremes, draws near to one-hot."""

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F

X = np.array([[1.0, -2.0, 0.5], [1000.0, 999.0, -1000.0]], np.float32)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_definition(dim, wrap):
    for f, want in (
        (F.softmax, special.softmax(X, dim)),
        (F.softmin, special.softmax(-X, dim)),
        (F.log_softmax, special.log_softmax(X, dim)),
    ):
        np.testing.assert_allclose(wrap(lambda x, f=f: f(x, dim))(X), want, rtol=1e-5)
        slopes = st.grad(lambda x, f=f: f(x, dim)[0].sum())(snp.array(X))
        assert np.isfinite(slopes).all()


def test_dtype():
    x = snp.ones(3, snp.bfloat16)
    for f in (F.softmax, F.softmin, F.log_softmax):
        assert f(x, 0).dtype == snp.bfloat16
        assert f(x, 0, dtype=snp.float32).dtype == snp.float32


def test_gumbel_softmax():
    logits, keys = snp.log(snp.array([0.2, 0.5, 0.3])), st.random.split(st.random.PRNGKey(0), 4000)
    hard = st.vmap(lambda k: F.gumbel_softmax(logits, hard=True, key=k))(keys)
    np.testing.assert_allclose(hard.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(np.asarray(hard).max(1), 1, atol=1e-6)
    # Four standard deviations of a share of 4000 draws.
    np.testing.assert_allclose(hard.mean(0), [0.2, 0.5, 0.3], atol=0.032)

    def part(logits, hard):
        return F.gumbel_softmax(logits, 0.5, hard, key=keys[0])[0]

    soft, also = (st.grad(part)(logits, hard) for hard in (False, True))
    np.testing.assert_allclose(soft, also, rtol=1e-6)
    assert abs(float(soft[0])) > 0
    sharp = F.gumbel_softmax(logits, 1e-4, key=keys[1])
    assert float(sharp.max()) > 0.99
    by_column = F.gumbel_softmax(snp.zeros((3, 2)), dim=0, hard=True, key=keys[0])
    assert by_column.sum(0).tolist() == [1, 1]


def test_axis_has_to_be_given():
    with pytest.raises(TypeError, match="dim"):
        F.softmax(snp.ones(3))


def test_a_message_names_the_function_that_was_called():
    with pytest.raises(ValueError, match=r"^softmin: axis 5 is out of bounds"):
        F.softmin(snp.ones(2), 5)
    with pytest.raises(ValueError, match=r"^gumbel_softmax: axis 5 is out of bounds"):
        F.gumbel_softmax(snp.ones(2), dim=5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gumbel_softmax_draws_each_category_as_often_as_softmax_says(dtype):
    logits = np.asarray([0, -1, -3, -7]).astype(dtype)
    n = 100_000
    x = F.gumbel_softmax(snp.broadcast_to(logits, (n, 4)), tau=0.5, hard=True, key=st.random.key(2))
    assert x.dtype == dtype
    chance = np.exp(logits.astype(np.float64))
    chance /= chance.sum()
    error = np.sqrt(n * chance * (1 - chance))
    assert (np.abs(np.asarray(x).astype(np.float64).sum(0) - n * chance) < 5 * error).all()
