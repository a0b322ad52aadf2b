"""jit: signatures, what is traced when, nested calls, what is logged."""

import dataclasses
import functools
import itertools
import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit import jit as module
from stretto._engine.api.jit.jit import Jitted
from stretto._engine.api.jit.signature import jitted_at
from stretto._engine.core.types import float0
from stretto._engine.native import native


class Counted:
    """A function that counts how often it is traced, or run."""

    def __init__(self, fun=lambda x: x + 1):
        self.fun, self.calls = fun, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.fun(*args, **kwargs)


# Signatures


@pytest.mark.parametrize(
    "one, same, other",
    [
        (snp.ones(3), snp.zeros(3), snp.ones(4)),
        (snp.ones(3), np.zeros(3, np.float32), snp.arange(3)),
        (np.zeros(3, np.float32), np.ones(3), np.ones((1, 3))),  # float64 is stored as float32
        (1.0, 2.5, snp.float32(1.0)),  # weak and strong
        (1, -7, 1.0),
        (True, False, 1),
        (snp.ones((0, 2)), snp.zeros((0, 2)), snp.ones((2, 0))),
        (snp.ones(2, snp.bfloat16), snp.zeros(2, snp.bfloat16), snp.ones(2, snp.float16)),
        ({"a": 1.0}, {"a": 2.0}, {"b": 1.0}),
        ([1.0, 2.0], [3.0, 4.0], (1.0, 2.0)),
        ([1.0, None], [3.0, None], [None, 1.0]),
    ],
)
def test_one_trace_a_signature(one, same, other):
    counted = Counted(lambda t: st.tree.map(lambda x: x * 2, t))
    f = st.jit(counted)
    f(one)
    f(one)
    f(same)
    assert counted.calls == 1
    f(other)
    assert counted.calls == 2
    f(one)
    assert counted.calls == 2


def test_positional_and_keyword_arguments():
    counted = Counted(lambda x, y=1.0, *, z=0.0: x - y * 10 + z * 100)
    f = st.jit(counted)
    assert float(f(1.0, 2.0)) == -19
    assert float(f(1.0, y=2.0)) == -19
    assert float(f(1.0, z=3.0, y=2.0)) == float(f(1.0, y=2.0, z=3.0)) == 281
    assert float(f(1.0)) == -9
    assert counted.calls == 4


@pytest.mark.parametrize(
    "static",
    [
        {"static_argnums": 1},
        {"static_argnums": (1,)},
        {"static_argnums": [-1]},
        {"static_argnames": "n"},
        {"static_argnames": ("n",)},
    ],
)
def test_static_arguments(static):
    traces = []

    def power(x, n):
        assert type(n) in (int, float, bool)
        traces.append(n)
        return x**n

    f = st.jit(power, **static)
    assert [float(f(2.0, n)) for n in (2, 3, 2, 3)] == [4, 8, 4, 8]
    assert traces == [2, 3]
    assert float(f(2.0, n=2)) == 4
    f(2.0, 2.0), f(2.0, 1), f(2.0, True)  # equal, and yet not the same value
    assert len(traces) == 6
    with pytest.raises(
        ValueError, match=r"power: the static argument .* must be hashable.*ndarray"
    ):
        f(2.0, np.ones(2))


def test_static_defaults_methods_and_closures():
    class Scale:
        def __init__(self, by):
            self.by, self.traces = by, 0

        @functools.partial(st.jit, static_argnums=0)
        def apply(self, x):
            self.traces += 1
            return x * self.by

    two, three = Scale(2.0), Scale(3.0)
    assert [float(s.apply(5.0)) for s in (two, three, two)] == [10, 15, 10]
    assert (two.traces, three.traces) == (1, 1)
    f = st.jit(lambda x, mode="double": x * 2 if mode == "double" else x, static_argnames="mode")
    assert (float(f(1.5)), float(f(1.5, mode="same")), float(f(1.5, "same"))) == (3, 1.5, 1.5)
    assert "apply" in repr(Scale.apply)


def test_ways_to_decorate():
    @st.jit
    def one(x):
        """Doubles."""
        return x * 2

    @st.jit(static_argnames="n")
    def two(x, n):
        return x * n

    three = st.jit(functools.partial(lambda x, y: x - y, y=1.0))
    four = st.jit(functools.partial(lambda x, y: x - y, 3.0))
    assert (one.__name__, one.__doc__, one.__wrapped__(3)) == ("one", "Doubles.", 6)
    assert [float(v) for v in (one(1.0), two(1.0, 3), three(1.0), four(1.0))] == [2, 3, 0, 2]

    class Callable:
        def __call__(self, x):
            return x + 1

    assert float(st.jit(Callable())(1.0)) == 2
    assert float(st.jit(st.jit(one))(1.0)) == 2
    with pytest.raises(TypeError, match="jit: expected a function, got int"):
        st.jit(3)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"static_argnames": "k"}, "static_argnames names 'k', but f takes x, n"),
        ({"static_argnums": 2}, "static_argnums names argument 2, but f takes 2 positional"),
    ],
)
def test_static_arguments_that_are_not_there(options, message):
    def f(x, n):
        return x

    with pytest.raises(ValueError, match=message):
        st.jit(f, **options)


def test_every_kind_of_parameter():
    def f(a, /, b, *rest, c=10.0, **named):
        return a + 2 * b + sum(rest) + c + sum(named.values())

    g = st.jit(f)
    assert float(g(1.0, 2.0)) == f(1.0, 2.0) == 15
    assert float(g(1.0, b=2.0)) == 15
    assert float(g(1.0, 2.0, 3.0, 4.0, c=0.0, z=5.0, a=6.0)) == f(
        1.0, 2.0, 3.0, 4.0, c=0.0, z=5.0, a=6.0
    )
    assert float(g(1.0, 2.0, self=3.0)) == 18  # a name that our own method has
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        g(b=1.0)
    h = st.jit(lambda a, /, **named: named["a"] if a else -1, static_argnums=0)
    assert float(h(True, a=2.0)) == 2  # the name of a positional-only argument is another's
    last = st.jit(lambda *xs: xs[0] * xs[-1], static_argnums=-1)
    assert (float(last(2.0, 3)), float(last(2.0, 4.0, 5))) == (6, 10)
    first = st.jit(lambda n, *xs: [x * n for x in xs], static_argnums=0)
    assert [float(x) for x in first(3, 1.0, 2.0)] == [3, 6]


def test_methods():
    @st.tree.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: st.Array
        scale: float = dataclasses.field(default=1.0, metadata={"static": True})

        @st.jit
        def apply(self, x):
            return x @ self.weight * self.scale

        @st.jit
        def __call__(self, x):
            return self.apply(x)

        @st.jit(static_argnames="times")
        def repeated(self, x, times=2):
            for _ in range(times):
                x = self.apply(x)
            return x

        @classmethod
        @functools.partial(st.jit, static_argnums=0)
        def named(cls, x):
            return {cls.__name__: x}

        @staticmethod
        @st.jit
        def plain(x):
            return x + 1

    layer, x = Layer(2 * snp.eye(2), 3.0), snp.ones(2)
    np.testing.assert_array_equal(layer.apply(x), 6)
    np.testing.assert_array_equal(layer(x), 6)
    np.testing.assert_array_equal(layer.repeated(x), 36)
    np.testing.assert_array_equal(layer.repeated(x, times=1), 6)
    np.testing.assert_array_equal(Layer.apply(layer, x), 6)
    np.testing.assert_array_equal(Layer(snp.eye(2), 1.0).apply(x), 1)
    assert list(Layer.named(x)) == ["Layer"] and float(layer.plain(1.0)) == 2
    assert (layer.apply.__name__, layer.apply.__self__) == ("apply", layer)
    assert "dot" in layer.apply.lower(layer, x).as_text()
    grads = st.grad(lambda layer: layer(x).sum())(layer)
    np.testing.assert_array_equal(grads.weight, 3)


def test_partial_objects_decorators_and_closures():
    def logged(times):
        def decorate(fun):
            @functools.wraps(fun)
            def call(*args, **kwargs):
                for _ in range(times):
                    out = fun(*args, **kwargs)
                return out

            return call

        return decorate

    @st.jit
    @logged(times=2)
    def f(x, *, y=1.0):
        return x + y

    assert (float(f(1.0)), float(f(1.0, y=2.0)), f.__name__) == (2, 3, "f")

    @logged(times=2)
    @st.jit(static_argnames=("mode",))
    def g(x, mode="same"):
        return x * 2 if mode == "twice" else x

    assert (float(g(1.0)), float(g(1.0, mode="twice"))) == (1, 2)
    partial = functools.partial(lambda x, n, m=0: x * n + m, n=3)
    assert float(st.jit(partial, static_argnames="m")(2.0, m=1)) == 7
    assert float(st.jit(functools.partial(st.jit(lambda x, y: x - y), 3.0))(1.0)) == 2
    bound = Counted(lambda x: x + 1).__call__
    assert float(st.jit(bound)(1.0)) == 2
    assert repr(st.jit(functools.partial(np.add, 1))) == "<jitted add>"


def test_settings_that_shape_programs_retrace():
    counted = Counted(lambda x: x * snp.arange(2.0))
    f = st.jit(counted)
    x = np.ones(2)
    assert f(x).dtype == snp.float32
    with st.enable_x64():
        assert f(x).dtype == snp.float64
        assert f(x).dtype == snp.float64
    assert f(x).dtype == snp.float32
    assert counted.calls == 2


# Results and captured values


def test_results_of_every_kind():
    x = snp.arange(3.0)

    def f(x, unused):
        return {
            "same": x,
            "twice": (x, x),
            "one": 1,
            "half": 0.5,
            "yes": True,
            "none": None,
            "host": np.arange(2),
            "empty": snp.zeros((0, 3)),
            "list": [x + 1],
        }

    out, again = st.jit(f)(x, 7.0), f(x, 7.0)
    assert st.tree.structure(out) == st.tree.structure(again)
    for a, b in zip(st.tree.leaves(out), st.tree.leaves(again), strict=True):
        assert isinstance(a, st.Array)
        np.testing.assert_array_equal(a, b)
    assert (out["one"].weak_type, out["one"].dtype, out["yes"].dtype) == (True, snp.int32, bool)
    assert st.jit(lambda: 3)().item() == 3
    assert st.jit(lambda x: ())(x) == ()
    assert st.jit(lambda x: None)(x) is None


def test_captured_values_are_constants_of_the_trace():
    table, scale = snp.arange(4.0), [2.0]
    f = st.jit(lambda i: table[i] * scale[0])
    assert float(f(3)) == 6
    scale[0] = 5.0
    assert float(f(2)) == 4
    assert float(f(snp.int32(2))) == 10  # another signature
    f.clear_cache()
    assert float(f(3)) == 15


def test_large_captured_array_is_no_text():
    big = snp.arange(10000.0)
    f = st.jit(lambda x: big * x)
    assert len(f.lower(1.0).as_text()) < 1000
    np.testing.assert_array_equal(f(2.0), 2 * np.arange(10000.0))


def test_numpy_arguments_are_copied():
    x = np.zeros(100000, np.float32)
    f = st.jit(lambda x: (x, x + 1))
    kept, plus = f(x)
    x[:] = 7
    np.testing.assert_array_equal(kept, 0)
    np.testing.assert_array_equal(plus, 1)
    np.testing.assert_array_equal(f(x)[1], 8)
    strided = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(f(strided)[0], strided)


def test_effects_happen_while_tracing():
    log = []
    f = st.jit(lambda x: log.append(x) or x + 1)
    f(1.0), f(2.0)
    assert len(log) == 1


def test_unused_arguments_and_work():
    def f(used, unused, also):
        for _ in range(50):
            unused = snp.sin(unused)
        return used * 2

    g = st.jit(f)
    np.testing.assert_array_equal(g(snp.ones(2), snp.ones(3), 5), [2, 2])
    assert "sine" not in g.lower(snp.ones(2), snp.ones(3), 5).as_text()


def test_nested():
    inner = Counted(snp.sin)
    f = st.jit(inner)
    g = st.jit(lambda x: f(f(x)) + f(x))
    np.testing.assert_allclose(g(1.0), np.sin(np.sin(1)) + np.sin(1), rtol=1e-6)
    f(1.0)
    assert inner.calls == 1  # one trace serves the nested call and the direct one


def test_a_nested_call_is_written_once():
    inner = st.jit(lambda x: snp.sin(x) * 2)
    text = st.jit(lambda x: inner(inner(x)) + inner(-x)).lower(snp.ones(3)).as_text()
    assert text.count("func.func private") == 1 and text.count("func.call @function_0") == 3
    assert text.count("stablehlo.sine") == 1
    both = st.jit(lambda x: st.jit(st.grad(inner))(x) + st.grad(inner)(x) + inner(x))
    assert float(both(0.0)) == 4


def test_inline():
    inner = Counted(lambda x, n: {"y": snp.sin(x) * n, "n": n})
    f = st.jit(inner, inline=True, static_argnames="n")
    table = snp.arange(3.0)
    g = st.jit(lambda x: f(x, n=2)["y"] + f(x * 2, n=2)["y"] + captures(x))
    captures = st.jit(lambda x: x + table, inline=True)
    graph = str(st.make_graph(g._fun)(1.0))
    assert "call" not in graph and graph.count("sin") == 2
    text = g.lower(1.0).as_text()
    assert "func.call" not in text and text.count("stablehlo.sine") == 2
    np.testing.assert_allclose(
        g(1.0), 2 * np.sin(1.0) + 2 * np.sin(2.0) + 1 + np.arange(3), rtol=1e-6
    )
    assert inner.calls == 1
    np.testing.assert_allclose(st.vmap(lambda x: f(x, n=3)["y"])(table), 3 * np.sin(table))
    assert float(st.grad(lambda x: f(x, n=3)["y"])(0.0)) == 3


@pytest.mark.parametrize("disable", [lambda: st.config(disable_jit=True), st.disable_jit])
def test_disable_jit(disable):
    counted = Counted(lambda x: x + 1 if x > 0 else x)
    f = st.jit(counted)
    with disable():
        assert float(f(1.0)) == 2 and float(f(snp.float32(-1.0))) == -1
        f(1.0)
        with st.disable_jit(False), pytest.raises(st.errors.TracedValueError):
            f(1.0)
    assert counted.calls == 4
    with pytest.raises(st.errors.TracedValueError):
        f(1.0)


def test_compilations_are_logged(caplog):
    f = st.jit(lambda x, n: x["a"] * n, static_argnums=1)
    f({"a": 1.0}, 2)
    assert not caplog.records
    with st.config(log_compiles=True, disk_cache=False):
        f({"a": 1.0}, 2)
        assert not caplog.records
        f({"a": snp.ones(3)}, 4)
        st.lax.scan(lambda c, _: (c + 1, None), 0, None, length=9000)
    first, second = caplog.records
    assert (first.name, first.levelname) == ("stretto", "WARNING")
    number = r"\d+\.\d ms"
    assert re.fullmatch(
        rf"compiled function for \(x\['a'\]: float32\[3\], 1=4\): trace {number}, "
        rf"lower {number}, compile {number}",
        first.getMessage(),
    )
    assert re.fullmatch(
        rf"compiled scan for \(.*int32.*\): lower {number}, compile {number}", second.getMessage()
    )


def test_float0_zeros_go_in_and_out():
    """Tangents of integers hold nothing, and are arguments like others."""
    zeros = np.zeros((2,), float0)
    f = st.jit(lambda x, t: (x + 1, t))
    for _ in range(2):
        out, t = f(1.0, zeros)
        assert float(out) == 2
        assert (t.dtype, t.shape) == (float0, (2,))
    assert f.lower(1.0, zeros).compile() is not None

    def g(x, n):
        return x * n

    pull = st.jit(lambda t: st.jvp(g, (2.0, np.int32(3)), t)[1])
    assert float(pull((1.0, np.zeros((), float0)))) == 3


def test_sizes_that_vary_do_not_go_with_shardings():
    there = st.sharding.SingleDeviceSharding(st.devices()[0])
    for how in ({"in_shardings": there}, {"out_shardings": there}):
        with pytest.raises(ValueError, match="dynamic_axes do not go together with shardings"):
            st.jit(snp.sin, dynamic_axes={0: "n"}, **how)


def test_equal_lengths_of_ragged_arrays_are_one_inside():
    """So that what is computed of both is known to fit; of others it is not."""
    first, second, other = (
        st.ragged([snp.ones(n) for n in lengths]) for lengths in ((2, 3), (2, 3), (3, 2))
    )
    f = st.jit(st.vmap(lambda x, y: x * y))
    for b in (first, second):
        assert [x.tolist() for x in f(first, b).to_list()] == [[1, 1], [1, 1, 1]]
    assert len(f._entries) == 1
    with pytest.raises(ValueError, match="do not broadcast"):
        f(first, other)
    assert len(f.trace(first, second)._entry.program.inputs) == 4
    assert len(f._entries) == 1


@pytest.mark.parametrize(
    "others", [(np.ones(2, np.float32), 3.0), (2, np.ones(2)), (1.0, 2.0, np.float32(4))]
)
def test_references_beside_arguments_that_are_no_arrays_yet(others):
    for place in range(len(others) + 1):
        ref = st.new_ref(snp.zeros(2))

        @st.jit
        def f(*args):
            (found,) = [x for x in args if isinstance(x, type(ref))]  # noqa: B023
            rest = [x for x in args if x is not found]
            found[...] += sum(rest)
            return found[...] * 2

        args = [*others[:place], ref, *others[place:]]
        for turn in (1, 2, 3):
            want = turn * sum(np.asarray(x) for x in others) * np.ones(2)
            np.testing.assert_allclose(f(*args), 2 * want)
            np.testing.assert_allclose(ref[...], want)


def test_what_a_reference_holds_is_not_donated():
    ref, x = st.new_ref(snp.ones(2)), snp.ones(2)

    @functools.partial(st.jit, donate_argnums=0)
    def f(tree):
        return tree["x"] + 1, tree["ref"][...] + 2

    for k in range(2):
        first, second = f({"ref": ref, "x": x + k})
        assert first.tolist() == [2 + k] * 2 and second.tolist() == [3, 3]
        assert ref[...].tolist() == [1, 1]
    entry = next(iter(f._entries.values()))
    assert entry.donated == [False, True]


def test_the_half_that_was_traced_first_is_forgotten(monkeypatch):
    monkeypatch.setattr("stretto._engine.api.jit.jit._SIGNATURES", 8)
    traced, kept = [], []
    f = st.jit(lambda x: traced.append(x.shape[0]) or x + 1)
    with st.config(recompilation_warning=0, interpret_small=True):
        for n in range(1, 14):
            f(snp.ones(n))
            kept.append([key.types[0].shape[0] for key in f._entries])
        assert kept[7] == [1, 2, 3, 4, 5, 6, 7, 8] and kept[8] == [5, 6, 7, 8, 9]
        assert kept[11] == [5, 6, 7, 8, 9, 10, 11, 12] and kept[12] == [9, 10, 11, 12, 13]
        f(snp.ones(10)), f(snp.ones(1))
    assert traced == [*range(1, 14), 1]


def test_a_program_that_uses_references_is_compiled_before_they_are_held(monkeypatch):
    """Other threads may use them meanwhile."""
    ref, order = st.new_ref(snp.ones(2)), []

    @st.jit
    def f(x):
        ref[...] += x
        return x

    monkeypatch.setattr(module, "SHARDED", ())  # where it runs is then known beforehand
    decide, at_once = Jitted._decide, module.at_once
    deciding = lambda self, entry: order.append("compiled") or decide(self, entry)
    monkeypatch.setattr(Jitted, "_decide", deciding)
    holding = lambda *args: order.append("held") or at_once(*args)
    monkeypatch.setattr(module, "at_once", holding)
    f(snp.ones(2))
    assert order[:2] == ["compiled", "held"]
    assert ref[...].tolist() == [2, 2]


def test_jitted_functions_of_one_code_are_counted_when_they_are_first_traced():
    def f(x):
        return x + 1

    first, second = st.jit(f), st.jit(f)
    assert jitted_at(f) == 0
    for n in (2, 3):
        first(snp.ones(n))
        assert jitted_at(f) == 1
    second(snp.ones(2))
    assert jitted_at(f) == 2
    assert jitted_at(lambda x: x) == jitted_at(len) == 0


@pytest.mark.skipif(native is None, reason="the extension was not built")
def test_eight_orders_of_a_dictionary_are_remembered():
    f = st.jit(lambda tree: tree["a"] - tree["b"] + tree["c"] * tree["d"])
    values = dict(zip("abcd", snp.arange(12.0).reshape(4, 3), strict=True))
    want = f(values)
    for names in itertools.permutations("abcd"):
        for _ in range(2):
            np.testing.assert_array_equal(f({name: values[name] for name in names}), want)
    assert [entry.records for entry in f._entries.values()] == [8]


@pytest.mark.parametrize("setting", ["debug_nans", "debug_infs"])
def test_nothing_is_donated_that_may_be_looked_at_again(setting):
    f = st.jit(lambda x: x + 1, donate_argnums=0)
    x = snp.ones(3)
    with st.config(**{setting: True}):
        assert f(x).tolist() == [2, 2, 2]
    assert x.tolist() == [1, 1, 1]
    f(x)
    assert x.is_deleted()
