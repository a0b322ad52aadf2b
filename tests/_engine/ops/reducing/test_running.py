"""Everything so far, combined in blocks: beside a loop, at sizes around whole blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto._engine.api.jit.jit import jit
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.reducing.running import running


def first_of(before, here):
    """Associative, but not commutative: the first place, and how many there are."""
    (place, count), (other, more) = before, here
    return place * (count > 0) + other * (count == 0), count + more


@given(
    st.sampled_from([1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, 300]),
    st.integers(0, 2),
    st.booleans(),
)
def test_combines_in_order(n, axis, reverse):
    shape = [2, 3, 2]
    shape[axis] = n
    places = np.moveaxis(np.arange(np.prod(shape)).reshape(shape), axis, 0)[:: -1 if reverse else 1]
    want = np.broadcast_to(places[:1], places.shape)[:: -1 if reverse else 1]
    counts = np.arange(1, n + 1)[:: -1 if reverse else 1].reshape([-1, 1, 1])
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)

    def run(x):
        return running(first_of, (0, 0), (x, absolute(x * 0) + 1), axis, reverse)

    first, count = run(as_value(x))
    np.testing.assert_array_equal(first, np.moveaxis(want, 0, axis))
    np.testing.assert_array_equal(count, np.moveaxis(np.broadcast_to(counts, want.shape), 0, axis))


def test_totals_are_not_recomputed_for_each_element():
    text = jit(lambda x: running(lambda u, v: [u[0] + v[0]], (0,), (x,), 0, False)[0])
    assert "optimization_barrier" in text.lower(np.ones(100, np.float32)).as_text()


@pytest.mark.parametrize(("size", "steps"), [(1, 0), (16, 15), (17, 17), (256, 31), (257, 33)])
def test_steps_grow_with_the_logarithm(size, steps):
    """Fifteen within blocks of sixteen, those over their totals, and one for both together."""
    taken = []

    def combine(before, here):
        taken.append(here)
        return [before[0] + here[0]]

    (sums,) = running(combine, (0,), (as_value(np.ones(size, np.int32)),), 0, False)
    np.testing.assert_array_equal(sums, np.arange(1, size + 1))
    assert len(taken) == steps
