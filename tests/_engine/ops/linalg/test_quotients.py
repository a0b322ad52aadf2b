"""Divided differences: slopes where values are equal, and jumps across gaps."""

import numpy as np

import stretto.numpy as snp
from stretto._engine.ops.linalg.quotients import quotients


def test_equal_values_have_the_slope_and_others_the_quotient():
    w = snp.array([1.0, 1.0, 2.0])
    got = quotients(w, w**3, 3 * w**2)
    np.testing.assert_allclose(got, [[3, 3, 7], [3, 3, 7], [7, 7, 12]], rtol=1e-6)


def test_a_function_that_parts_equal_values_has_none():
    w = snp.array([1.0, 1.0])
    got = np.asarray(quotients(w, snp.array([0.0, 1.0]), snp.zeros(2)))
    assert np.isinf(got[0, 1])
    assert np.isinf(got[1, 0])
    np.testing.assert_array_equal(np.diag(got), 0)


def test_quotients_of_a_jump_are_those_of_the_gap():
    w = snp.array([1.0, 1.0 + 1e-3, 2.0])
    got = quotients(w, snp.array([0.0, 1.0, 1.0]), snp.zeros(3))
    gap = np.float32(1.0 + 1e-3) - 1
    want = np.array([[0, 1 / gap, 1], [1 / gap, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(got, want, rtol=1e-4)
