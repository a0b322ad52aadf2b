"""Waiting for results; run with the extension in C and, by ``test_native``, without."""

from collections import OrderedDict

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.sharding import placement
from stretto._engine.xla import pjrt


def test_gives_the_tree_back():
    f = st.jit(lambda x: {"a": x + 1, "b": [x, None]})
    out = f(snp.ones(1000))
    assert st.block_until_ready(out) is out
    np.testing.assert_array_equal(out["a"], 2)


def test_takes_any_leaves():
    tree = {"host": np.ones(2), "number": 3, "none": None, "array": snp.ones(2)}
    assert st.block_until_ready(tree) is tree
    x = snp.ones(2)
    assert x.block_until_ready() is x
    assert st.block_until_ready(()) == ()


def test_errors_are_raised_here():
    def fails(x):
        raise KeyError("no such thing")

    x = snp.ones(2)
    f = st.jit(lambda x: (x + 1, st.pure_callback(fails, x, x)))
    with pytest.raises(KeyError, match="no such thing"):
        st.block_until_ready(f(x))


def test_refuses_what_was_donated():
    x = snp.ones(2)
    x.delete()
    with pytest.raises(st.errors.DonatedArrayError, match="was deleted"):
        st.block_until_ready({"x": x, "y": snp.ones(2)})


def test_inside_a_trace():
    f = st.jit(lambda x: st.block_until_ready(x) + 1)
    assert float(f(1.0)) == 2


@pytest.fixture(params=["chosen", "in Python"])
def unfinished(request):
    """The function that looks for buffers in plain trees: in C where the extension was built."""
    return placement.unfinished if request.param == "chosen" else placement._unfinished


def computed(n):
    """Arrays that have no NumPy face."""
    with st.config(interpret_small=False):
        arrays = st.jit(lambda x: [x + i for i in range(n)])(snp.ones(2))
    assert all(a._host is None for a in arrays)
    return arrays


def test_buffers_of_plain_trees(unfinished):
    a, b, c = computed(3)
    tree = {"z": a, "a": [b, None, (c, {}), []]}
    assert [*map(id, unfinished(tree))] == [id(x._buffer) for x in (a, b, c)]
    assert [*map(id, unfinished(b))] == [id(b._buffer)]
    assert unfinished({}) == unfinished(None) == unfinished([None, ()]) == []


def test_what_has_elements_at_hand_is_finished(unfinished):
    a, b = computed(2)
    np.asarray(a)
    assert [*map(id, unfinished([snp.ones(2), a, b]))] == [id(b._buffer)]
    assert unfinished(snp.ones(2)) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda x: OrderedDict(x=x),
        lambda x: np.ones(2),
        lambda x: 3,
        lambda x: type("Named", (tuple,), {})((x,)),
        lambda x: st.ShapeDtypeStruct((2,), np.float32),
    ],
)
def test_other_trees_go_the_general_way(unfinished, make):
    (x,) = computed(1)
    tree = {"x": x, "other": make(x)}
    assert unfinished(tree) is None
    assert st.block_until_ready(tree) is tree


def test_what_was_donated_goes_the_general_way(unfinished):
    x, y = computed(2)
    x.delete()
    assert unfinished([y, x]) is None


def test_a_list_in_itself(unfinished):
    ring = []
    ring.append(ring)
    assert unfinished(ring) is None


def test_nested_deeper_than_the_short_way_goes(unfinished):
    (x,) = computed(1)
    tree = x
    for _ in range(65):
        tree = [tree]
    assert [*map(id, unfinished(tree))] == [id(x._buffer)]
    assert unfinished([tree]) is None
    assert st.block_until_ready([tree]) == [tree]


def failing(monkeypatch, make):
    """Let waiting fail by the error that ``make`` gives for the first buffer; note those calls."""
    calls = []

    def fail(buffers):
        calls.append([*buffers])
        raise make(buffers[0])

    monkeypatch.setattr(pjrt, "wait_for_all", fail)
    return calls


def test_of_several_errors_the_first_leaf_has_its_own_raised(monkeypatch):
    a, b = computed(2)
    names = {id(a._buffer): "that of a", id(b._buffer): "that of b"}
    failing(monkeypatch, lambda first: pjrt.runtime().jax.JaxRuntimeError(names[id(first)]))
    with pytest.raises(RuntimeError, match="that of a") as caught:
        st.block_until_ready({"b": b, "a": a})
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyboardInterrupt])
def test_what_a_signal_handler_raises_is_raised(monkeypatch, kind):
    calls = failing(monkeypatch, lambda first: kind("of the handler"))
    with pytest.raises(kind, match="of the handler"):
        st.block_until_ready(computed(2))
    assert len(calls) == 1


def test_a_tree_that_is_computed_starts_no_runtime(monkeypatch):
    calls = failing(monkeypatch, lambda first: ValueError)
    st.block_until_ready([snp.ones(2), {"x": snp.ones(3)}])
    assert calls == []
