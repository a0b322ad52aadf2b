"""Interpolation in arrays: what the table of functions cannot say."""

import numpy as np
import pytest

from stretto.scipy.ndimage import map_coordinates

X = np.array([1.0, 2.0, 4.0], np.float32)


def test_halves_go_away_from_zero():
    at = [np.array([-0.5, 0.5, 1.5], np.float32)]
    np.testing.assert_array_equal(map_coordinates(X, at, 0, cval=9.0), [9, 2, 4])
    np.testing.assert_array_equal(map_coordinates(X, at, 0, "wrap"), [4, 2, 4])


def test_integers_are_rounded():
    out = map_coordinates(np.array([0, 3]), [np.array([0.5, 0.1], np.float32)], 1)
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, [2, 0])


def test_whole_coordinates_are_places():
    np.testing.assert_array_equal(map_coordinates(X, [np.array([2, 3])], 1, "reflect"), [4, 4])


def test_refuses():
    with pytest.raises(NotImplementedError, match="order must be 0 or 1; got 3"):
        map_coordinates(X, [X], 3)
    with pytest.raises(NotImplementedError, match=r"mode must be one of constant.*got 'grid-wrap'"):
        map_coordinates(X, [X], 1, "grid-wrap")
    with pytest.raises(ValueError, match=r"coordinates for each axis of float32\[3\], got 2"):
        map_coordinates(X, [X, X], 1)
    with pytest.raises(ValueError, match="expected elements to read"):
        map_coordinates(X[:0], [X], 1)
