"""Jitted functions as objects: what they are asked for, copied, pickled and forgotten."""

import copy
import functools
import inspect
import operator
import pickle
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit import jit


@pytest.mark.parametrize("calls", [1, 2, 4])
@pytest.mark.parametrize("how", ["all", "one", "every signature"])
def test_clear_caches(calls, how, monkeypatch):
    """Also of calls that were remembered, which is from the third on."""
    monkeypatch.setattr("stretto._engine.api.jit.jit._SIGNATURES", 2)
    traced = []
    f = st.jit(lambda x: traced.append(x) or x + 1)
    x = snp.ones(3)
    for _ in range(calls):
        f(x)
    assert len(traced) == 1
    if how == "all":
        st.clear_caches()
    elif how == "one":
        f.clear_cache()
    else:  # as others come, the first goes
        for n in (4, 5, 6):
            f(snp.ones(n))
    del traced[1:]
    for _ in range(3):
        assert f(x).tolist() == [2, 2, 2]
    assert len(traced) == 2


@st.jit
def doubled(x):
    """Twice that."""
    return 2 * x


class Holder:
    @st.jit
    def method(self, x):
        return x

    @staticmethod
    @functools.partial(st.jit, static_argnames="n")
    def static(x, n=2):
        return [x] * n


def test_jitted_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert pickle.loads(pickle.dumps(Holder.static)) is Holder.static
    made = st.jit(operator.pow, static_argnums=1, inline=True)
    again = pickle.loads(pickle.dumps(made))
    assert again is not made and again(3.0, 2) == 9.0 and again.__wrapped__ is operator.pow
    graph = st.make_graph(lambda x: again(x, 2))(3.0)
    assert [e.primitive.name for e in graph.equations] == ["mul"]  # written there, not called
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(st.jit(lambda x: x))


def test_copies_of_jitted_functions_are_themselves():
    f = st.jit(lambda x: x)
    assert copy.copy(f) is copy.deepcopy({"f": f})["f"] is f


def test_what_is_noted_on_a_function_comes_along():
    def f(x, y=1, *, z):
        return x

    f.tag, f.trace = "noted", "not this one"
    jitted = st.jit(f)
    assert jitted.tag == "noted" and callable(jitted.trace)
    assert jitted.__wrapped__ is f and str(inspect.signature(jitted)) == "(x, y=1, *, z)"
    assert inspect.signature(jitted, follow_wrapped=False) == inspect.signature(f)
    jitted.tag = "anew"
    assert (f.tag, st.jit(jitted).__wrapped__) == ("noted", jitted)
    assert weakref.ref(jitted)() is jitted and len({jitted, st.jit(f)}) == 2


def test_who_asks_for_arrays_is_given_traced_ones():
    """A function that tells arrays from other arguments does so while it is traced."""

    def f(x):
        return x * 2 if isinstance(x, st.Array) else None

    assert st.jit(f)(2.0) == 4.0 and st.grad(f)(2.0) == 2.0 and f(2.0) is None
    assert st.vmap(f)(snp.ones(2)).tolist() == [2.0, 2.0]
    assert not any(isinstance(x, st.Array) for x in (np.ones(2), 1.0, None, [], st.Array))


def test_classes_of_nodes_are_made_with_arrays_alone():
    class Checked:
        def __init__(self, x):
            assert isinstance(x, st.Array)
            self.x = x

    st.tree.register_pytree_node(Checked, lambda c: ((c.x,), None), lambda _, xs: Checked(*xs))
    f = st.jit(lambda c, n, *, more: c.x * n + more["a"].x, static_argnums=1)
    made = Checked(snp.ones(2))
    assert f(made, 3, more={"a": made}).tolist() == [4, 4]
    with pytest.raises(st.errors.TracedValueError, match=r"more\['a'\]"):
        st.jit(lambda c, *, more: float(more["a"].x))(made, more={"a": Checked(snp.ones(()))})


def test_what_is_being_traced_while_the_cache_is_cleared_is_not_kept():
    """Nor is anything kept by whoever holds the old entries."""
    traced = []

    def fun(x):
        traced.append(x)
        if len(traced) == 1:
            f.clear_cache()
        return x + 1

    f = st.jit(fun)
    for n in (1, 2, 2):
        assert f(1.0) == 2 and len(traced) == n
    kept = f._entries
    assert kept
    f.clear_cache()
    assert not kept and not f._entries


def test_traced_values_that_outlived_their_transformation_are_refused():
    """As an argument of what was compiled, and where a function has one from outside."""
    left = []
    st.make_graph(lambda x: left.append(x) or x)(1.0)
    f = st.jit(lambda x: x + 1)
    f(1.0)
    for call in (f, st.jit(lambda x: x + left[0])):
        with pytest.raises(st.errors.EscapedTracerError, match="outlived"):
            call(left[0])
    with pytest.raises(st.errors.EscapedTracerError, match="outlived"):
        st.jit(lambda x: x + left[0])(1.0)


def test_the_time_of_tracing_is_kept(monkeypatch):
    ticks = iter([5.0, 7.5])
    f = st.jit(lambda x: x + 1)
    monkeypatch.setattr(jit, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    f(1.0)
    (entry,) = f._entries.values()
    assert entry.seconds == 2.5
