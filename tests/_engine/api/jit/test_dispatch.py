"""The jitted call's short way: the same results as the general way, whatever comes next.

Run with the extension in C and, by ``test_native``, without.
"""

import dataclasses
import functools
import gc
import itertools
import sys
import weakref
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit import dispatch
from stretto._engine.native import native
from stretto._engine.xla import patience
from tests._engine.api.jit.test_entry import entry_of

needs_native = pytest.mark.skipif(native is None, reason="the extension was not built")


def arrays(n, start=0.0):
    return [snp.arange(start + i, start + i + 3) for i in range(n)]


def total(tree):
    return sum((i + 1) * float(x.sum()) for i, x in enumerate(st.tree.leaves(tree)))


TREES = {
    "two": lambda a: (a[0], a[1]),
    "dict": lambda a: ({"b": a[0], "a": a[1]},),
    "dict the other way": lambda a: ({"a": a[1], "b": a[0]},),
    "nested": lambda a: ([{"w": (a[0], None)}, a[1]], {"z": a[2], "y": [a[3]]}),
    "empty": lambda a: ([], {}, a[0], ()),
    "none": lambda a: (None, a[0]),
    "deep": lambda a: ([[[[{"x": [[a[0]]]}]]]], a[1]),
    "wide": lambda a: ({f"k{i}": x for i, x in enumerate(arrays(300))}, a[0]),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_of_arguments(name):
    traces = []

    def f(*args):
        traces.append(1)
        leaves = st.tree.leaves(args)
        return sum((i + 1) * x.sum() for i, x in enumerate(leaves))

    jitted = st.jit(f)
    for start in (0.0, 10.0, 20.0):
        args = TREES[name](arrays(4, start))
        np.testing.assert_allclose(jitted(*args), total(args), rtol=1e-6)
    assert len(traces) == 1
    assert entry_of(jitted).records == (1 if native or name == "two" else 0)


@needs_native
def test_the_order_of_a_dictionary_does_not_matter():
    f = st.jit(lambda tree: {"p": tree["a"] - tree["b"], "q": tree["b"]})
    one, two = snp.arange(3.0), snp.ones(3)
    for _ in range(3):
        for tree in ({"a": one, "b": two}, {"b": two, "a": one}):
            out = f(tree)
            np.testing.assert_array_equal(out["p"], [-1, 0, 1])
            np.testing.assert_array_equal(out["q"], 1)
    assert entry_of(f).records == 2


@needs_native
def test_names_made_anew_each_time_are_known():
    f = st.jit(lambda tree: tree["weight_0"] + tree["weight_1"])
    for k in range(20):
        names = ["".join(["weight_", str(i)]) for i in range(2)]
        assert float(f({n: snp.asarray(float(k + i)) for i, n in enumerate(names)})) == 2 * k + 1
    assert entry_of(f).records == 1


@needs_native
def test_keyword_arguments():
    f = st.jit(lambda x, *, scale, shift: x * scale + shift)
    for k in range(3):
        x, a, b = snp.ones(2), snp.asarray(2.0), snp.asarray(float(k))
        np.testing.assert_array_equal(f(x, scale=a, shift=b), 2 + k)
        np.testing.assert_array_equal(f(x, shift=b, scale=a), 2 + k)
    assert entry_of(f).records == 2


def test_unused_arguments_and_captured_arrays():
    table = snp.arange(3.0)
    f = st.jit(lambda a, b, c: (c * table, a))
    for k in range(3):
        a, b, c = arrays(3, float(k))
        out = f(a, b, c)
        np.testing.assert_array_equal(out[0], np.asarray(c) * [0, 1, 2])
        np.testing.assert_array_equal(out[1], a)
    assert entry_of(f).records == 1
    table.delete()
    with pytest.raises(st.errors.DonatedArrayError, match="deleted"):
        f(*arrays(3))


class Pair(NamedTuple):
    first: Any
    second: Any


@st.tree.register_dataclass
@dataclasses.dataclass
class Scaled:
    value: Any
    factor: Any = dataclasses.field(default=1, metadata={"static": True})


class Box:
    """A node with keys; how often it was taken apart in each way is counted."""

    with_keys = without = 0

    def __init__(self, value, label):
        self.value, self.label = value, label

    def flatten_with_keys(self):
        Box.with_keys += 1
        return ((st.tree.GetAttrKey("value"), self.value),), self.label

    def flatten(self):
        Box.without += 1
        return [self.value], self.label

    @staticmethod
    def unflatten(label, children):
        return Box(*children, label)


st.tree.register_pytree_with_keys(Box, Box.flatten_with_keys, Box.unflatten, Box.flatten)

NODES = {
    "named tuple": Pair,
    "dataclass": lambda a, b: [Scaled(a, 3), Scaled(b, "x")],
    "with keys": lambda a, b: (Box(a, ("label", 1)), Box(b, None)),
    "module": lambda a, b: Layer(a, b, 3),
    "nested": lambda a, b: Pair({"x": Box([a], 1)}, Scaled(Pair(b, None), (1, 2))),
}


class Layer(st.nn.Module):
    def __init__(self, weight, bias, size):
        super().__init__()
        self.weight, self.bias = st.nn.Parameter(weight), st.nn.Parameter(bias)
        self.size = size


@pytest.mark.parametrize("name", NODES)
def test_registered_classes(name):
    traces = []

    @st.jit
    def f(tree):
        traces.append(1)
        return st.tree.map(lambda x: 2 * x, tree)

    for start in (0.0, 10.0, 20.0):
        tree = NODES[name](*arrays(2, start))
        out = f(tree)
        assert st.tree.structure(out) == st.tree.structure(tree)
        for x, y in zip(st.tree.leaves(tree), st.tree.leaves(out), strict=True):
            np.testing.assert_array_equal(y, 2 * np.asarray(x))
    assert len(traces) == 1
    assert entry_of(f).records == (native is not None)


def test_static_data_is_told_apart_by_value():
    f = st.jit(lambda one: one.value * (one.factor or 1))
    x = snp.ones(2)
    for _ in range(3):
        for factor in (2, 3, None, 2.5):
            np.testing.assert_array_equal(f(Scaled(x, factor)), factor or 1)
    g = st.jit(lambda box: box.value + len(box.label))
    for _ in range(3):
        for n in range(3):
            label = tuple(str(i) for i in range(n))  # equal, and another object each time
            np.testing.assert_array_equal(g(Box(x, label)), 1 + n)
    assert len(g._entries) == 3
    assert all(entry.records == (native is not None) for entry in g._entries.values())


def test_static_data_that_cannot_be_hashed():
    f = st.jit(lambda box: box.value + len(box.label))
    for _ in range(3):
        np.testing.assert_array_equal(f(Box(snp.ones(2), "x")), 2)
        np.testing.assert_array_equal(f(Box(snp.ones(2), ["x", "y"])), 3)
    assert len(f._entries) == 2
    if native is not None:  # it is tried once
        assert [entry.records for entry in f._entries.values()] == [1, 8]


@needs_native
def test_known_calls_ask_no_keys():
    f = st.jit(lambda box: box.value + 1)
    for _ in range(3):
        f(Box(snp.ones(2), "asked once"))
    Box.with_keys = Box.without = 0
    for k in range(3):
        np.testing.assert_array_equal(f(Box(snp.ones(2) * k, "asked once")), k + 1)
    assert (Box.with_keys, Box.without) == (0, 3)


def test_errors_of_a_class_are_its_own():
    class Refuses(Box):
        def flatten(self):
            if self.label == "no":
                raise LookupError("not today")
            return super().flatten()

    st.tree.register_pytree_node(Refuses, Refuses.flatten, lambda label, c: Refuses(*c, label))
    f = st.jit(lambda box: box.value + 1)
    for _ in range(3):
        np.testing.assert_array_equal(f(Refuses(snp.ones(2), "yes")), 2)
        with pytest.raises(LookupError, match="not today"):
            f(Refuses(snp.ones(2), "no"))


def test_a_class_that_changes_the_list_it_is_in():
    class Eats(Box):
        def flatten(self):
            self.label.clear()
            return (self.value,), None

    st.tree.register_pytree_node(Eats, Eats.flatten, lambda _, children: Eats(*children, []))
    f = st.jit(lambda xs: [x.value if isinstance(x, Eats) else x for x in xs])
    x = snp.ones(2)
    for _ in range(3):
        np.testing.assert_array_equal(f([Eats(x, []), x])[1], 1)
    xs = []
    xs += [Eats(x, xs), x, x]
    try:
        f(xs)
    except (ValueError, IndexError, RuntimeError) as error:  # as optree finds it
        assert "list" in str(error).lower() or "size" in str(error).lower()
    np.testing.assert_array_equal(f([Eats(x, []), x])[1], 1)


def test_typed_keys():
    draw = st.jit(st.random.uniform)
    for seed in range(4):
        key = st.random.key(seed)
        assert float(draw(key)) == float(st.random.uniform(key))
    assert entry_of(draw).records == (native is not None)


def test_arrays_of_numpy_and_numbers():
    f = st.jit(lambda x, y: x + y)
    x = snp.ones(2)
    for y in (1, 2.0, np.float32(3), np.ones(2, np.float32), snp.ones(2), True, 1j, np.ones(2)):
        for _ in range(3):
            out = f(x, y)
            np.testing.assert_array_equal(out, 1 + np.asarray(y))
            assert out.type is (x + y).type
    changing = np.arange(6, dtype=np.float32)
    for step in range(4):
        changing += step
        for view in (changing[::2], changing[:3], changing.astype(int)[:3]):
            np.testing.assert_array_equal(f(snp.zeros(3), view), view)
            changing.flags.writeable = step % 2 == 0
            changing.flags.writeable = True
    results = [f(snp.zeros(6), changing), f(snp.zeros(6), changing)]
    before = changing.copy()
    changing[:] = -1
    for out in results:
        np.testing.assert_array_equal(out, before)
    np.testing.assert_array_equal(f(snp.zeros(0), np.zeros(0, np.float32)), np.zeros(0))


def test_numbers_too_large_are_refused_each_time():
    f = st.jit(lambda x: x + 1)
    for k in range(3):
        assert int(f(k)) == k + 1
        with pytest.raises(OverflowError):
            f(2**40)


@needs_native
def test_what_is_remembered_of_numpys_arrays():
    f = st.jit(lambda tree: tree["x"] @ tree["y"])
    for k in range(4):
        tree = {"x": np.full((4, 4), k, np.float64), "y": np.ones((4, 2), np.float32)}
        np.testing.assert_array_equal(f(tree), 4 * k)
    assert entry_of(f).records == 1


def test_what_is_no_array_is_refused_each_time():
    f = st.jit(lambda x, y: x + y)
    x = snp.ones(2)
    f(x, x), f(x, x)
    with pytest.raises(TypeError, match=r"y must be an array or a number; got builtins\.str"):
        f(x, "one")
    np.testing.assert_array_equal(f(x, x), 2)


def test_types_shapes_and_settings_are_told_apart():
    f = st.jit(lambda x: x * 2)
    for _ in range(2):
        for x in (snp.ones(2), snp.ones(3), snp.ones(2, int), snp.asarray(1.0), snp.asarray(1)):
            out = f(x)
            assert out.shape == x.shape and out.dtype == x.dtype
        with st.enable_x64():
            assert f(snp.ones(2, snp.float64)).dtype == np.float64
        with st.config(disable_jit=True):
            np.testing.assert_array_equal(f(snp.ones(2)), 2)


def test_lists_and_tuples_are_told_apart():
    f = st.jit(lambda tree: tree)
    x = snp.ones(2)
    for _ in range(2):
        for tree in ([x, x], (x, x), [[x], x], [x, [x]], {"a": x}, {"b": x}, [x], [], None, [None]):
            out = f(tree)
            assert type(out) is type(tree) and st.tree.structure(out) == st.tree.structure(tree)


def test_inside_transformations_the_short_way_is_not_taken():
    f = st.jit(lambda tree: tree["x"] ** 2)
    x = snp.asarray(3.0)
    for _ in range(2):
        assert float(f({"x": x})) == 9
        assert float(st.grad(lambda x: f({"x": x}))(x)) == 6
        # A concrete argument, while something is traced: it is part of what is recorded.
        program = st.make_graph(lambda y: y + f({"x": x}))(x)
        assert "call" in str(program)


def test_donated_arguments():
    f = st.jit(lambda tree: {"x": tree["x"] + 1}, donate_argnums=0)
    tree = {"x": snp.ones(100) + 1}
    old = f(tree)["x"]
    assert tree["x"].is_deleted()
    with pytest.raises(st.errors.DonatedArrayError):
        f(tree)
    g = st.jit(lambda tree: tree["x"] * 2)
    g({"x": old}), g({"x": old})
    old.delete()
    with pytest.raises(st.errors.DonatedArrayError):
        g({"x": old})


def test_static_arguments():
    f = st.jit(lambda x, n: x * n, static_argnums=1)
    for _ in range(2):
        for n in (2, 3):
            np.testing.assert_array_equal(f(snp.ones(2), n), n)
    g = st.jit(lambda x, flag: x if flag is None else -x, static_argnums=1)
    for _ in range(2):
        assert float(g(snp.asarray(1.0), None)) == 1 and float(g(snp.asarray(1.0), ())) == -1


@pytest.mark.parametrize("how", [{"static_argnums": (0, -1)}, {"static_argnames": ("a", "n")}])
def test_static_arguments_by_position_and_name(how):
    seen = []

    def f(a, x, n=0):
        seen.append((a, n))
        return x * n if a == "times" else x + n

    jitted = st.jit(f, **how)
    x = snp.ones(2)
    for _ in range(3):
        for n in (2, 3):
            np.testing.assert_array_equal(jitted("".join(["tim", "es"]), x, n), n)
            if "static_argnames" in how:
                np.testing.assert_array_equal(jitted("plus", x, n=n), 1 + n)
                np.testing.assert_array_equal(jitted(n=n, x=x, a="times"), n)
    assert len(seen) == len(jitted._entries) == (6 if "static_argnames" in how else 2)


def test_static_values_are_told_apart_by_type():
    f = st.jit(lambda x, n: x + (type(n) is float), static_argnums=1)
    for _ in range(3):
        for n in (1, 1.0, True):
            np.testing.assert_array_equal(f(snp.ones(2), n), 2 if type(n) is float else 1)
    assert len(f._entries) == 3


def test_static_values_that_cannot_be_hashed():
    f = st.jit(lambda x, n: x, static_argnums=1)
    x = snp.ones(2)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, 1), 1)
        with pytest.raises(ValueError, match="must be hashable"):
            f(x, [1])


@needs_native
def test_an_interrupt_in_the_hash_of_a_static_value_is_the_calls():
    class Stops:
        armed = False

        def __hash__(self):
            if Stops.armed:
                raise KeyboardInterrupt
            return 0

    f = st.jit(lambda x, n: x, static_argnums=1)
    one, x = Stops(), snp.ones(2)
    f(x, one), f(x, one)
    assert entry_of(f).records == 1
    Stops.armed = True
    with pytest.raises(KeyboardInterrupt):
        f(x, one)
    Stops.armed = False
    np.testing.assert_array_equal(f(x, one), 1)


def test_clear_cache_and_many_signatures():
    f = st.jit(lambda x: x + 1)
    with st.config(recompilation_warning=0):
        for n in range(1, 8):
            np.testing.assert_array_equal(f(snp.ones(n)), 2)
            np.testing.assert_array_equal(f(snp.ones(n)), 2)
    f.clear_cache()
    assert not f._entries
    np.testing.assert_array_equal(f(snp.ones(1)), 2)


def test_errors_of_the_function_are_the_users():
    f = st.jit(lambda x, y: x + y)
    x = snp.ones(2)
    f(x, x), f(x, x)
    with pytest.raises(TypeError):
        f(x)
    with pytest.raises(ValueError, match="broadcast"):
        f(x, snp.ones(3))


def test_methods_and_attributes():
    class Scale:
        factor = 2.0

        @st.jit
        def times(self, x):
            """Times."""
            return x * self

    assert Scale.times.__doc__ == "Times." and Scale.times.__name__ == "times"
    one = snp.asarray(2.0)
    assert float(Scale.times(one, snp.asarray(3.0))) == 6

    @st.jit
    def plain(x):
        return x

    def other(x):
        """Another."""
        return x

    wrapped = functools.update_wrapper(plain, other)
    assert wrapped is plain and plain.__name__ == "other" and vars(plain)["__doc__"] == "Another."
    functools.update_wrapper(plain, plain.__wrapped__)
    plain.__name__ = "plain"
    plain.note = "kept"
    assert plain.note == "kept" and repr(plain) == "<jitted plain>" and callable(plain)


def test_nothing_is_kept_alive():
    x = snp.arange(5.0)
    f = st.jit(lambda tree: tree[0] + 1)
    f([x]), f([x])
    gone, function = weakref.ref(x), weakref.ref(f)
    del x
    gc.collect()
    assert gone() is None
    del f
    gc.collect()
    assert function() is None


@needs_native
def test_a_dispatcher_that_is_not_attached_is_general():
    class Echo(native.Dispatcher):
        def _general(self, args, kwargs):
            return args, kwargs

    assert Echo()(1, a=2) == ((1,), {"a": 2})
    assert Echo()._fingerprint((), {}) is None
    with pytest.raises(TypeError, match="Record"):
        Echo()._remember(b"", (1, 2))
    fields = dict.fromkeys(["interpret", "run", "handlers", "unflatten", "tidy", "alive"])
    with pytest.raises(TypeError, match="constants must be arrays"):
        native.CallRecord(**fields, leaves=(0,), constants=(1,), out_types=())
    with pytest.raises(TypeError, match="whole numbers"):
        native.CallRecord(**fields, leaves=("a",), constants=(), out_types=())
    with pytest.raises(TypeError, match="positional"):
        native.CallRecord(*fields)
    with pytest.raises(TypeError):
        Echo()._attach(1, 2)
    echo = Echo()
    echo._attach((), ())
    with pytest.raises(RuntimeError, match="once"):
        echo._attach((), ())


def test_pythons_dispatcher_knows_calls_of_arrays_alone():
    class Echo(dispatch._Dispatcher):
        def _general(self, args, kwargs):
            return args, kwargs

    echo, x = Echo(), snp.ones(2)
    echo._attach((), ())
    assert echo._fingerprint((x, x), {}) == echo._fingerprint((x + 1, x), {}) is not None
    assert echo._fingerprint((x,), {}) != echo._fingerprint((snp.ones(3),), {})
    assert echo._fingerprint((x,), {"a": x}) is echo._fingerprint((1.0,), {}) is None
    echo._remember(echo._fingerprint((x,), {}), "how it is run")
    assert echo._table
    echo._forget()
    assert not echo._table


@needs_native
def test_trees_beyond_the_walk():
    deep = snp.ones(2)
    for _ in range(100):
        deep = [deep]
    f = st.jit(lambda tree: st.tree.leaves(tree)[0] + 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(deep), 2)
    assert f._fingerprint((deep,), {}) is None
    assert f._fingerprint(({1: snp.ones(2)},), {}) is None
    assert f._fingerprint((object(),), {}) is None


def test_no_more_signatures_are_kept_than_it_says(monkeypatch):
    monkeypatch.setattr("stretto._engine.api.jit.jit._SIGNATURES", 8)
    f = st.jit(lambda x: x + 1)
    with st.config(recompilation_warning=0, interpret_small=True):
        for n in [*range(1, 30), *range(1, 30)]:
            for _ in range(2):
                np.testing.assert_array_equal(f(snp.ones(n)), 2)
            assert len(f._entries) <= 8


@pytest.mark.parametrize("kind", ["array", "tree", "static", "donated", "waited"])
def test_calls_keep_nothing(kind):
    """Where each call was made, the runtime notes, and keeps until it is told not to."""
    x = snp.ones(4)
    plain = st.jit(lambda x: x + 1)
    tree = st.jit(lambda tree: {"b": tree["a"] + 1})
    static = st.jit(lambda x, n: x + n, static_argnums=1)
    donated = st.jit(lambda x: x + 1, donate_argnums=0)
    result = plain(x)

    def call():
        if kind == "array":
            plain(x)
        elif kind == "tree":
            st.block_until_ready(tree({"a": x}))
        elif kind == "static":
            static(x, 2).block_until_ready()
        elif kind == "donated":
            donated(snp.copy(x)).block_until_ready()
        else:
            result.block_until_ready()

    for _ in range(200):
        call()
    plain(x)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(2000):
        call()
    for _ in range(100):
        plain(x)
    gc.collect()
    assert sys.getallocatedblocks() - before < 500


@needs_native
def test_eight_ways_to_write_a_call_are_known():
    """Dictionaries in other orders are the same call, and each is known by itself."""
    f = st.jit(lambda tree: tree["a"] - tree["b"])
    x = snp.ones(2)
    f(dict.fromkeys("abcd", x))  # which compiles it
    for k, order in enumerate(itertools.permutations("abcd")):
        f(dict.fromkeys(order, x))
        assert entry_of(f).records == min(k + 1, 8)


@needs_native
def test_records_are_forgotten_where_programs_are_not_simply_run(monkeypatch):
    """As after an interrupt that left one running: all calls then ask for it."""
    monkeypatch.setattr(patience, "unusual", [])
    f, x = st.jit(lambda x: x + 1), snp.ones(2)
    f(x), f(x)
    asked = []
    general = type(f)._general
    monkeypatch.setattr(
        type(f), "_general", lambda self, *how: asked.append(1) or general(self, *how)
    )
    f(x)
    assert asked == []
    patience._set("abandoned")
    np.testing.assert_array_equal(f(x), 2)
    assert asked == [1]


@pytest.mark.parametrize(
    ("unusual", "changes", "recordable"),
    [
        ([], {}, True),
        (["abandoned"], {}, False),
        ([], {"runner": None}, False),
        ([], {"taken": True}, False),
        ([], {"has_tracers": True}, False),
        ([], {"quick": object()}, False),
        ([], {"out_types": ()}, False),
    ],
)
def test_which_calls_are_recorded(monkeypatch, unusual, changes, recordable):
    """Of a decided entry whose program is simply run, and has results to make arrays of."""
    monkeypatch.setattr(dispatch, "unusual", unusual)
    entry = SimpleNamespace(
        runner=object(), taken=False, has_tracers=False, quick=None, out_types=(object(),)
    )
    vars(entry).update(changes)
    assert dispatch.recordable(entry) is recordable


# The dispatcher in Python, with records of a program that is none.


class Plain(dispatch._Dispatcher):
    """It knows calls by its table; the general way is noted."""

    def __init__(self):
        self._attach((), ())
        self.others = []

    def _general(self, args, kwargs):
        self.others.append((args, kwargs))
        if "fail" in kwargs:
            raise KeyError("planted")
        return "the general way"


def remembered(f, args, **changes):
    """Have ``f`` know calls as this one: the sum and the difference of two arrays, or a program."""
    done = []
    twice = lambda arrays: done.append(arrays) or [arrays[0] + arrays[1], arrays[0] - arrays[1]]
    how = {
        "interpret": twice,
        "run": None,
        "handlers": "handlers",
        "leaves": (1, 0),
        "constants": (),
        "out_types": (),
        "unflatten": lambda outs: {"sum": outs[0], "difference": outs[1]},
        "tidy": lambda: done.append("tidy"),
        "alive": (),
    }
    f._remember(f._fingerprint(args, {}), dispatch._Record(**{**how, **changes}))
    return done


def test_pythons_dispatcher_interprets_what_it_knows():
    f, (x, y) = Plain(), arrays(2)
    assert f(x, y) == "the general way"
    done = remembered(f, (x, y))
    found = f(x, y)
    np.testing.assert_array_equal(found["difference"], np.asarray(y) - np.asarray(x))
    assert [id(a) for a in done[0]] == [id(y), id(x)] and len(f.others) == 1
    constant = snp.ones(3)
    remembered(f, (x, x), leaves=(0,), constants=(constant,), unflatten=None)
    np.testing.assert_array_equal(f(x, x), x + 1)
    assert f(x, snp.ones(2)) == f(x, y=y) == f(x, 2.0) == "the general way"
    assert len(f.others) == 4
    f._forget()
    assert f(x, y) == "the general way"


def test_pythons_dispatcher_runs_what_it_knows():
    f, given = Plain(), []

    class Ran:
        def consume_with_handlers(self, handlers):
            given.append(handlers)
            return ["one buffer", "another"]

    x, held = arrays(2)
    computed = st.jit(lambda x: x @ x + st.lax.fori_loop(0, 3, lambda i, c: c * x, x))(held)
    types = (x.type, held.type)
    run = lambda buffers: given.append(buffers) or Ran()
    done = remembered(
        f, (x, computed), interpret=None, run=run, out_types=types, unflatten=lambda outs: outs
    )
    computed.block_until_ready()
    out, other = f(x, computed)
    assert (out._buffer, out.type, other._buffer) == ("one buffer", types[0], "another")
    buffers, handlers = given
    assert buffers[0] is computed.to_buffer() and buffers[1] is x.to_buffer()
    assert handlers == "handlers" and done == ["tidy"]


def test_pythons_dispatcher_leaves_what_is_traced_and_errors_alone():
    f, (x, y) = Plain(), arrays(2)
    remembered(f, (x, y))
    st.jit(lambda z: [f(x, y), z][1])(1.0)
    assert len(f.others) == 1
    with pytest.raises(KeyError, match="planted"):
        f(x, fail=True)


def test_pythons_dispatcher_is_in_no_traceback():
    class Fails(dispatch._Dispatcher):
        def _general(self, args, kwargs):
            raise ValueError("planted")

    f = Fails()
    f._attach((), ())
    with st.config(traceback_filtering="off"), pytest.raises(ValueError, match="planted") as whole:
        f(1.0)
    with pytest.raises(ValueError, match="planted") as hidden:
        f(1.0)
    names = lambda raised: [frame.name for frame in raised.traceback]
    assert names(whole)[1:] == ["__call__", "_general"]
    assert "__call__" not in names(hidden)


class Pair(NamedTuple):
    one: object
    other: object


def test_leaves_are_numbered_as_they_are_met_and_listed_as_they_are_flattened():
    """What a fingerprint refers to by address is kept alive: classes, and names."""
    x = snp.ones(2)
    order, alive = dispatch._order(
        (Pair(x, None), {"b": x, "a": [x, x]}), {"z": x, "k": Pair(x, x)}
    )
    # By flattening: the pair's, those of "a", that of "b"; then those of "k", and of "z".
    assert order == [0, 2, 3, 1, 5, 6, 4]
    assert [a for a in alive if a not in (tuple, list)] == [Pair, "b", "a", "z", "k", Pair]
    assert dispatch._order((Box(x, "label"),), {}) == ([0], [tuple, Box])


@pytest.mark.parametrize(
    ("number", "fits"),
    [
        (2**31 - 1, True),
        (2**31, False),
        (-(2**31) + 1, True),
        (-(2**31), False),
        (0, True),
        (True, True),
        (1e300, True),
        (2j, True),
    ],
)
def test_numbers_of_which_the_short_way_makes_arrays(number, fits):
    """Others may not fit, and go the general way, which names the argument."""
    made = dispatch.leaf_of(number)
    assert (made is not None) is fits
    assert not fits or made.weak_type or isinstance(number, bool)
