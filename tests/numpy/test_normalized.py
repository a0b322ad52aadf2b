"""Softmax and its like: masks, initial values, weights of zero, the two ends of log1mexp."""

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto.numpy.normalized import log1mexp, log_softmax, logsumexp, softmax

X = np.array([[0.3, -1.2, 2.0], [500.0, 499.0, -800.0]], np.float32)
MASK = np.array([[True, False, True], [False, False, False]])


@pytest.mark.parametrize("axis", [-1, 0, None, (0, 1)])
def test_scipys(axis):
    np.testing.assert_allclose(softmax(X, axis), special.softmax(X, axis), rtol=2e-6)
    np.testing.assert_allclose(log_softmax(X, axis), special.log_softmax(X, axis), rtol=1e-5)
    np.testing.assert_allclose(logsumexp(X, axis), special.logsumexp(X, axis), rtol=1e-6)


@pytest.mark.parametrize("bad", [0.0, np.inf, np.nan])
def test_what_a_mask_leaves_out_does_not_count_nor_its_slope(bad):
    x = np.where(MASK, X, np.float32(bad))
    row = special.softmax(X[0, [0, 2]])
    want = np.zeros((2, 3))
    want[0, [0, 2]] = row
    np.testing.assert_allclose(softmax(x, where=MASK), want, rtol=1e-6)
    logs = np.asarray(log_softmax(x, where=MASK))
    np.testing.assert_allclose(logs[0, [0, 2]], np.log(row), rtol=1e-6)
    assert np.isneginf(logs[~MASK]).all()
    total = logsumexp(x, -1, where=MASK)
    np.testing.assert_allclose(total, [special.logsumexp(X[0, [0, 2]]), -np.inf], rtol=1e-6)
    slope = st.grad(lambda x: softmax(x, where=MASK)[0, 0])(snp.array(x))
    p, q = row
    np.testing.assert_allclose(slope, [[p * q, 0, -p * q], [0, 0, 0]], rtol=1e-5)


def test_the_least_greatest_element_changes_nothing():
    np.testing.assert_allclose(softmax(X[:1], initial=5.0), softmax(X[:1]), rtol=1e-6)


def test_weights_of_zero_have_slopes():
    """d log(b · exp(a)) / d b = exp(a - out), of b = 0 too."""
    a, b = snp.array([1.0, 2.0]), snp.array([0.0, 3.0])
    slope = st.grad(lambda b: logsumexp(a, b=b))(b)
    np.testing.assert_allclose(slope, np.exp([1.0, 2.0]) / (3 * np.exp(2.0)), rtol=1e-6)
    slope = st.grad(lambda a: logsumexp(a, b=b))(a)
    np.testing.assert_allclose(slope, [0, 1], atol=1e-7)
    far = st.grad(lambda b: logsumexp(snp.array([1e4, 0.0]), b=b))(b)
    assert np.isfinite(np.asarray(far)).all()


def test_sums_of_zero():
    a = snp.array([1.0, 1.0])
    f = lambda a: logsumexp(a, b=snp.array([1.0, -1.0]))
    assert float(f(a)) == -np.inf
    np.testing.assert_array_equal(st.grad(f)(a), [0, 0])


def test_narrow_floats_whole_numbers_and_complex_ones():
    assert softmax(snp.ones(3, snp.bfloat16)).dtype == snp.bfloat16
    assert softmax(np.arange(3)).dtype == np.float32
    many = snp.ones(5000, snp.float16)
    np.testing.assert_allclose(snp.sum(softmax(many).astype(float)), 1, rtol=1e-3)
    z = np.array([1 + 2j, 0.5], np.complex64)
    np.testing.assert_allclose(logsumexp(z), np.log(np.exp(z).sum()), rtol=1e-5)


def test_log1mexp_at_both_ends():
    x = np.array([1e-300, 1e-20, 0.1, np.log(2), 5.0, 800.0, 0.0, np.inf])
    with st.enable_x64(), np.errstate(divide="ignore"):
        got = np.asarray(log1mexp(x))
        small = x < 1e-10
        np.testing.assert_allclose(got[small], np.log(x[small]), rtol=1e-14)
        np.testing.assert_allclose(got[2:5], np.log(1 - np.exp(-x[2:5])), rtol=1e-12)
        np.testing.assert_allclose(got[4:6], -np.exp(-x[4:6]), rtol=4e-3)
        assert got[-1] == 0 and np.isnan(float(log1mexp(-1.0)))
        np.testing.assert_allclose(st.grad(log1mexp)(1e-10), 1e10, rtol=1e-9)


def test_refusals():
    with pytest.raises(TypeError, match="softmax: where"):
        softmax(X, where=np.ones((2, 3)))
    with pytest.raises(ValueError, match="log_softmax"):
        log_softmax(X, axis=2)
    with pytest.raises(ValueError, match="logsumexp"):
        logsumexp(X, axis=(0, 0))
