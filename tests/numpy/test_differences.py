"""Differences: integers, and messages."""

import pytest

import stretto.numpy as snp

X = snp.arange(6.0).reshape(2, 3)


def test_phases_of_integers_stay_integers():
    assert snp.unwrap(snp.array([0, 3, 6, 1]), period=7).dtype == snp.int32
    assert snp.unwrap(snp.array([0, 4, 8])).dtype == snp.float32


def test_messages():
    cases = [
        (lambda: snp.diff(X, -1), ValueError, "diff: n must not be negative, got -1"),
        (lambda: snp.diff(snp.array(1.0)), ValueError, "diff: expected an array of rank 1 or more"),
        (lambda: snp.gradient(X, edge_order=3), ValueError, "edge_order must be 1 or 2, got 3"),
        (lambda: snp.gradient(X, edge_order=2), ValueError, "at least 3 samples along axis 0"),
        (lambda: snp.gradient(X, 1.0, 2.0, 3.0), TypeError, "one for each of 2 axes; got 3"),
        (lambda: snp.gradient(X, snp.ones(2)), ValueError, "one array for each axis; got one"),
        (lambda: snp.gradient(X, snp.ones(4), axis=1), ValueError, "or 3 coordinates along axis 1"),
        (lambda: snp.trapezoid(X, axis=2), ValueError, "trapezoid: axis 2 is out of bounds"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.ediff1d(snp.array([True, False])),
            TypeError,
            r"ediff1d: booleans have no difference",
        ),
        (
            lambda: snp.trapezoid(snp.ones(3), 2.0),
            ValueError,
            r"trapezoid: x must say where the samples lie",
        ),
        (lambda: snp.trapezoid(snp.ones(3), snp.ones(5)), ValueError, r"trapezoid: shapes"),
        (lambda: snp.unwrap(snp.ones(3) * 1j), TypeError, r"unwrap: p must be real"),
        (
            lambda: snp.unwrap(snp.ones(3), period=snp.ones(4)),
            ValueError,
            r"unwrap: period, float32\[4\], does not broadcast",
        ),
        (
            lambda: snp.unwrap(snp.ones(3), snp.ones(4)),
            ValueError,
            r"unwrap: discont, float32\[4\], does not broadcast",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()


def test_gradients_at_coordinates_are_exact_for_parabolas():
    places = snp.array([0.0, 1.0, 3.0, 7.0])
    slopes = snp.gradient(places**2, places, edge_order=2)
    assert slopes.tolist() == pytest.approx([0, 2, 6, 14], abs=1e-5)


def test_a_number_has_no_gradients():
    assert snp.gradient(snp.array(2.0)) == snp.gradient(snp.array(2.0), 1.0) == []
