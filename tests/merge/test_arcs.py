"""Weights of sums on arcs: at their ends, for vectors that are known, and where there is no arc."""

import numpy as np
import pytest

from stretto.merge import arcs


def test_weights_of_arcs_at_their_ends_and_where_there_is_none():
    products = np.array([[4.0, 1.0], [1.0, 9.0]])
    for function in (arcs.slerp, arcs.nuslerp):
        np.testing.assert_allclose(function(products, 0.0), [1, 0], atol=1e-12)
        np.testing.assert_allclose(function(products, 1.0), [0, 1], atol=1e-12)
        parallel = np.array([[1.0, 2.0], [2.0, 4.0]])
        np.testing.assert_allclose(function(parallel, 0.25), [0.75, 0.25])
        np.testing.assert_allclose(function(-parallel * [[-1, 1], [1, -1]], 0.25), [0.75, 0.25])
        np.testing.assert_allclose(function(np.zeros((2, 2)), 0.25)[0] >= 0, True)
    opposite = np.array([[1.0, -1.0], [-1.0, 1.0]])
    np.testing.assert_allclose(arcs.multislerp(opposite, [0.5, 0.5]), [0.5, 0.5])
    three = np.array([[1, -0.5, -0.5], [-0.5, 1, -0.5], [-0.5, -0.5, 1]])
    with pytest.raises(ValueError, match="directions is 0"):
        arcs.multislerp(three, [1 / 3] * 3)
    np.testing.assert_array_equal(arcs.karcher(np.zeros((3, 3)), 10, 1e-5), [0, 0, 0])
    assert arcs.stock(np.eye(3)) == 0
    assert arcs.stock(np.array([[1.0, -1.0], [-1.0, 1.0]])) == 0  # no such t


def products_of(*vectors):
    return np.array([[np.dot(x, y) for y in vectors] for x in vectors])


def test_points_of_an_arc_have_the_length_and_the_angle_of_their_place():
    first, second = np.array([3.0, 0, 0]), np.array([1.0, 2, 2])  # both of length 3
    for t in (0.1, 0.5, 0.8):
        for function in (arcs.slerp, arcs.nuslerp):
            point = function(products_of(first, second), t) @ [first, second]
            np.testing.assert_allclose(np.linalg.norm(point), 3)
            whole = np.arccos(first @ second / 9)
            np.testing.assert_allclose(np.arccos(first @ point / 9), t * whole)


def test_the_karcher_mean_of_an_even_fan_is_its_middle():
    angles = np.array([0.2, 0.5, 0.8])
    fan = np.stack([np.cos(angles), np.sin(angles)], -1) * [[1], [2], [3]]
    mean = arcs.karcher(products_of(*fan), 20, 1e-9) @ fan
    np.testing.assert_allclose(mean, 2 * np.array([np.cos(0.5), np.sin(0.5)]), 1e-6)


def test_one_model_is_its_own_mean():
    products = np.array([[4.0]])
    np.testing.assert_allclose(arcs.multislerp(products, [1.0]), [1.0], 1e-6)
    np.testing.assert_allclose(arcs.karcher(products, 10, 1e-5), [1.0])


def test_a_model_that_is_zero_has_no_direction():
    found = arcs.karcher(products_of([2.0, 0], [0.0, 0], [2.0, 0]), 10, 1e-5)
    point = found @ np.array([[2.0, 0], [0, 0], [2.0, 0]])
    np.testing.assert_allclose(point, [4 / 3, 0], 1e-6)  # the length counts it


def test_how_far_models_agree():
    assert arcs.stock(np.ones((3, 3))) == 1  # they are one
    cosine = 0.5
    products = np.full((3, 3), cosine) + (1 - cosine) * np.eye(3)
    np.testing.assert_allclose(arcs.stock(products), 3 * cosine / (1 + 2 * cosine))
    rows = np.stack([products, np.eye(3)])
    np.testing.assert_allclose(arcs.stock(rows), [0.75, 0])
