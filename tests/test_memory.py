"""Nothing grows: device buffers, Python objects and kept programs over thousands of calls."""

import gc
import weakref

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import pjrt

CALLS = 10_000


def live():
    """Device buffers, and objects that the garbage collector knows, after a collection."""
    gc.collect()
    return len(pjrt.runtime().client.live_arrays()), len(gc.get_objects())


def assert_flat(call, calls=CALLS):
    for _ in range(20):
        call()
    buffers, objects = live()
    for _ in range(calls):
        call()
    buffers_after, objects_after = live()
    assert buffers_after <= buffers
    assert objects_after <= objects + 50  # the test runner makes some of its own


W, X = np.ones((8, 8), np.float32), np.ones((4, 8), np.float32)


@st.jit
def jitted(w, x):
    return snp.tanh(x @ w), {"sum": snp.sum(w)}


def loss(w, x):
    return snp.sum(snp.tanh(x @ w) ** 2)


def test_calls_of_a_jitted_function():
    assert_flat(lambda: jitted(W, X))


def test_results_that_feed_the_next_call():
    step = st.jit(lambda w, x: w - 0.1 * st.grad(loss)(w, x))
    state = [snp.array(W)]

    def call():
        state[0] = step(state[0], X)

    assert_flat(call)


def test_a_jitted_gradient():
    slope = st.jit(st.value_and_grad(loss))
    assert_flat(lambda: slope(W, X))


def test_an_eager_gradient_of_a_jitted_function():
    inner = st.jit(loss)
    assert_flat(lambda: st.grad(inner)(W, X), 500)


def test_an_eager_gradient():
    assert_flat(lambda: st.grad(loss)(W, X), 1000)


def test_an_eager_vmap_of_a_gradient():
    assert_flat(lambda: st.vmap(st.grad(loss), (None, 0))(W, X[:, None]), 500)


def test_eager_loops_and_branches():
    def body(c, x):
        return st.lax.cond(x > 0, lambda c: c + x, lambda c: c * 2, c), c

    assert_flat(lambda: st.lax.scan(body, 0.0, np.arange(3.0, dtype=np.float32)), 200)


def test_calls_that_fail():
    """A wrong shape, found while tracing; the trace and its tracers are let go."""
    bad = st.jit(lambda w, x: w @ x)

    def call():
        with pytest.raises((TypeError, ValueError)):
            bad(W, np.ones(3, np.float32))

    assert_flat(call)


def test_gradients_that_fail():
    def call():
        with pytest.raises(TypeError):
            st.grad(lambda w: w @ W)(W)

    assert_flat(call, 1000)


def test_arrays_move_to_the_device_and_back():
    plus = st.jit(lambda x: x + 1)
    assert_flat(lambda: np.asarray(plus(X)))


def test_a_jitted_function_that_is_let_go_takes_its_traces_along():
    def use():
        held = snp.array(np.ones((100, 100), np.float32))
        st.jit(lambda x: x + held)(1.0)
        return weakref.ref(held)

    watched = use()
    gc.collect()
    assert watched() is None


def test_functions_made_anew_are_not_kept():
    """A new function each time, as in a loop over settings: traced anew, compiled once."""

    def call():
        st.jit(lambda x: snp.sum(x) * 3)(X)

    assert_flat(call, 200)
