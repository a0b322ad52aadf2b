"""Counts in bins: NumPy's rules for them, edges, and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.random.default_rng(0).normal(size=60).astype(np.float32)


@pytest.mark.parametrize(
    "rule", ["auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt"]
)
def test_rules_for_bins(rule):
    counts, edges = snp.histogram(snp.array(X), rule)
    wanted, places = np.histogram(X, rule)
    np.testing.assert_array_equal(counts, wanted)
    np.testing.assert_allclose(edges, places, rtol=1e-6)
    inside = snp.histogram_bin_edges(snp.array(X), rule, range=(-1, 1))
    np.testing.assert_allclose(inside, np.histogram_bin_edges(X, rule, (-1, 1)), rtol=1e-6)


def test_edges_of_one_number_and_of_known_ends():
    assert snp.histogram_bin_edges(snp.array([2, 2]), 2).tolist() == [1.5, 2, 2.5]
    ends = snp.array([0.0, 2.0])
    assert snp.histogram_bin_edges(snp.array(X), 2, ends).tolist() == [0, 1, 2]
    counts, edges = snp.histogram(snp.array([1, 2, 5]), snp.array([0, 2, 5]))
    assert counts.tolist() == [1, 2] and edges.dtype == snp.int32
    one, other = snp.histogram2d(snp.array(X), snp.array(X), snp.array([-1.0, 0.0, 1.0, 2.0]))[1:]
    assert one.shape == other.shape == (4,)
    counts, edges = snp.histogramdd([snp.array(X), snp.array(X)], [2, 3])
    assert counts.shape == (2, 3) and len(edges) == 2


def test_messages():
    x = snp.array(X)
    cases = [
        (lambda: snp.histogram(x, 2.5), ValueError, "bins must be a number of bins, their edges"),
        (lambda: snp.histogram(x, 0), ValueError, "expected at least one bin, got bins=0"),
        (lambda: snp.histogram(x, 2, (1, 0)), ValueError, "a finite range whose first end"),
        (lambda: snp.histogram(snp.array([np.nan])), ValueError, r"got \(nan, nan\)"),
        (lambda: snp.histogram(x, "auto", weights=x), TypeError, "cannot take weights"),
        (lambda: snp.histogram(x, weights=x[:2]), ValueError, "weights and a must have one shape"),
        (lambda: snp.histogram(x * 1j), TypeError, "complex numbers have no order"),
        (lambda: snp.histogram_bin_edges(x * 1j), TypeError, "bin_edges: a must be real"),
        (lambda: snp.histogramdd(x), ValueError, "a row each, in sample"),
        (lambda: snp.histogramdd([x, x], [1, 2, 3]), ValueError, "for each of 2 dimensions"),
        (lambda: snp.histogramdd([x, x], weights=x[:1]), ValueError, "a weight for each of 60"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(st.errors.TracedValueError, match="bins='auto'"):
        st.jit(lambda x: snp.histogram(x, "auto"))(x)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.histogram(snp.ones(3), "x"),
            ValueError,
            r"histogram: 'x' is not a valid estimator",
        ),
        (
            lambda: snp.histogram(snp.ones(3), snp.ones(0)),
            ValueError,
            r"histogram: expected at least one edge",
        ),
        (
            lambda: snp.histogram2d(snp.ones(3), snp.ones(2)),
            ValueError,
            r"histogram2d: expected arrays of rank 1 and of one length",
        ),
        (
            lambda: snp.histogram2d(snp.ones(3), snp.ones(3), 0),
            ValueError,
            r"histogram2d: expected at least one bin",
        ),
        (
            lambda: snp.histogramdd([]),
            ValueError,
            r"histogramdd: expected arrays of rank 1 .* got none",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
