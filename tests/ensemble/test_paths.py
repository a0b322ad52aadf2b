"""The barrier between two models."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import barrier


def loss(p):
    return snp.sum((p["w"] ** 2 - 1) ** 2)


def test_a_barrier_between_two_minima():
    one, other = {"w": snp.array([1.0])}, {"w": snp.array([-1.0])}
    found = barrier(loss, one, other)
    at = np.linspace(0, 1, 11)
    np.testing.assert_allclose(found.weights, at, rtol=1e-6)
    np.testing.assert_allclose(found.losses, ((1 - 2 * at) ** 2 - 1) ** 2, atol=1e-6)
    assert float(found.height) == 1


def test_no_barrier_in_a_valley_nor_on_a_slope():
    found = barrier(lambda p: p["w"] ** 2, {"w": 3.0}, {"w": 1.0}, 7)
    assert float(found.height) == 0
    found = barrier(lambda p: 2 * p["w"], {"w": 3.0}, {"w": 1.0}, 7)
    np.testing.assert_allclose(found.height, 0, atol=1e-6)


def test_along_an_arc_and_compiled():
    one, other = {"w": snp.array([1.0, 0.0])}, {"w": snp.array([0.0, 1.0])}
    away = lambda p: abs(st.tree.norm(p) - 1)
    straight = barrier(away, one, other, 3)
    np.testing.assert_allclose(straight.height, 1 - 0.5**0.5, rtol=1e-5)
    np.testing.assert_allclose(
        barrier(away, one, other, 3, path=st.tree.slerp).height, 0, atol=1e-6
    )
    again = st.jit(lambda a, b: barrier(away, a, b, 3))(one, other)
    np.testing.assert_allclose(again.losses, straight.losses, atol=1e-6)
    heights = st.vmap(lambda a: barrier(away, a, other, 3).height)(st.stack([one, other]))
    np.testing.assert_allclose(heights, [1 - 0.5**0.5, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: barrier(loss, {"w": 1.0}, {"w": 2.0}, 1), "at least 2 points, got 1"),
        (lambda: barrier(lambda p: p["w"], {"w": snp.ones(2)}, {"w": snp.ones(2)}), "one number"),
        (lambda: barrier(loss, {"w": 1.0}, {"v": 2.0}), "part at"),
    ],
    ids=["points", "shape", "structure"],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
