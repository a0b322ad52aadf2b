"""Formulas of methods: on arrays, differentiated and mapped."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.merge import formulas


def draw(*shape):
    return snp.array(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize(("share", "size", "count"), [(1.0, 5, 5), (0.5, 5, 2), (0.0, 5, 1)])
def test_how_many_a_share_is(share, size, count):
    assert formulas.kept_count(share, size) == count


def test_what_agrees():
    x = snp.array([1.0, -3.0, 1.0, 0.0])
    y = snp.array([2.0, 1.0, -1.0, 0.0])
    for of_zero, expected in (("positive", [[1, 1, 1, 0], [1, 0, 0, 0]]),
                              ("none", [[1, 1, 0, 0], [1, 0, 0, 0]])):  # fmt: skip
        agree = formulas.agreeing([x, y], of_zero)
        np.testing.assert_array_equal(agree, np.array(expected, bool))
        total, share = formulas.elected([x, y], [0.5, 2.0], of_zero)
        np.testing.assert_array_equal(total, (np.array([x, y]) * expected).sum(0))
        np.testing.assert_array_equal(share, [0.5, 2.0] @ np.array(expected))


def test_what_is_kept_is_multiplied_by_the_product_that_is_given():
    x = snp.array([3.0, -2.0, 1.0])
    keep = formulas.large(x, 2)
    assert formulas.only(x, keep).tolist() == [3, -2, 0]
    assert formulas.only(x, keep, 2.0).tolist() == [6, -4, 0]
    assert formulas.only(x, keep, 2.0, lambda a, b: a - b).tolist() == [1, -4, 0]
    assert formulas.drawn(snp.array([0.1, 0.5]), 0.5).tolist() == [True, False]


def test_averages_by_precision():
    x, f = draw(2, 5), abs(draw(2, 5)) + 0.1
    average = lambda x: formulas.by_precision(list(x), list(f), [1.0, 2.0], 0.5)
    shares = np.maximum(np.asarray(f), 0.5) * np.array([[1.0], [2.0]])
    expected = (shares * np.asarray(x)).sum(0) / shares.sum(0)
    np.testing.assert_allclose(average(x), expected, rtol=1e-6)
    mapped = st.vmap(lambda x, f: formulas.by_precision(list(x), list(f), [1.0, 2.0], 0.5), 1)(x, f)
    np.testing.assert_allclose(mapped, expected, rtol=1e-6)
    slopes = st.grad(lambda x: average(x).sum())(x)
    np.testing.assert_allclose(slopes, shares / shares.sum(0), rtol=1e-6)
