"""``jit`` of one function again shares what was traced."""

import copy
import functools
import gc
import pickle
import weakref

import stretto
from stretto.compat.jax import shared_jit as module
from stretto.compat.jax.calls import jit


def counted():
    traces = []

    def f(x, n=1):
        traces.append(n)
        return x * n

    return f, traces


def test_a_loop_traces_once():
    f, traces = counted()
    assert [float(jit(f)(2.0)) for _ in range(5)] == [2.0] * 5
    assert len(traces) == 1  # though the first compiled function was gone at the second call
    g, traces = counted()
    held = jit(g)
    assert jit(g) is held and [float(jit(g)(2.0)) for _ in range(5)] == [2.0] * 5
    assert len(traces) == 1


def test_caches_that_are_cleared_are_forgotten_by_the_function():
    for clear in (lambda f: stretto.clear_caches(), lambda f: jit(f).clear_cache()):
        f, traces = counted()
        jit(f)(2.0)
        clear(f)
        jit(f)(2.0)
        assert len(traces) == 2


def test_options_make_others():
    f, _ = counted()
    plain, named = jit(f), jit(f, static_argnames="n")
    assert plain is not named and jit(f, static_argnames="n") is named
    assert jit(f, static_argnames=["n"]) is not named  # a list cannot be looked up
    assert float(named(2.0, n=3)) == 6


def test_a_decorator_that_copies_attributes_is_another_function():
    f, _ = counted()
    held = jit(f)

    @functools.wraps(f)
    def doubled(x):
        return 2 * f(x)

    assert jit(doubled) is not held and float(jit(doubled)(1.0)) == 2
    assert jit(f) is held


def test_a_function_jitted_once_is_freed_with_its_last_reference():
    gc.disable()
    try:
        f, _ = counted()
        jit(f)(1.0)
        seen = weakref.ref(f)
        del f
        assert seen() is None
    finally:
        gc.enable()


def test_what_is_kept_is_not_pickled():
    f, _ = counted()
    jit(f)
    kept = vars(f)[module._NAME]
    assert len(kept) == 1 and len(pickle.loads(pickle.dumps(kept))) == 0
    assert not copy.copy(kept).is_of(f)
    assert float(jit(functools.partial(f, n=2))(1.0)) == 2  # no function, so nothing is kept
