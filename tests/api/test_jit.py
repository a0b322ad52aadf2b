"""jit: signatures, what is traced when, looking at programs, what cannot be traced."""

import functools
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


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


def test_disable_jit():
    counted = Counted(lambda x: x + 1 if x > 0 else x)
    f = st.jit(counted)
    with st.config(disable_jit=True):
        assert float(f(1.0)) == 2 and float(f(snp.float32(-1.0))) == -1
        f(1.0)
    assert counted.calls == 3
    with pytest.raises(st.errors.TracedValueError):
        f(1.0)


def test_many_threads_trace_once():
    started = threading.Barrier(8)

    def fun(x):
        for _ in range(200):
            x = snp.sin(x) * 1.01
        return x

    counted = Counted(fun)
    f, results = st.jit(counted), []

    def work(n):
        started.wait()
        results.append((n, float(f(snp.float32(1.0)))))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert counted.calls == 1
    assert len(results) == 8 and len({value for _, value in results}) == 1


def test_threads_have_their_own_transformations():
    def work(n, out):
        out[n] = [float(st.jit(st.grad(lambda x: x**n))(1.5)) for _ in range(3)]

    out = {}
    threads = [threading.Thread(target=work, args=(n, out)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n, values in out.items():
        np.testing.assert_allclose(values, n * 1.5 ** (n - 1), rtol=1e-6)


def test_clear_caches():
    counted = Counted()
    f = st.jit(counted)
    f(1.0)
    st.clear_caches()
    f(1.0)
    assert counted.calls == 2


# What cannot be traced


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x, n: x if x > 0 else -x, r"bool\(\).*the argument x.*cond"),
        (lambda x, n: [x for _ in range(n)], "the argument n.*static_argnums"),
        (lambda x, n: [1, 2, 3][n], "index.*the argument n.*static_argnums"),
        (lambda x, n: float(x), r"float\(\).*the argument x.*astype"),
        (lambda x, n: int(n) + 1, r"int\(\).*the argument n"),
        (lambda x, n: complex(x), r"complex\(\).*the argument x"),
        (lambda x, n: np.asarray(x), "the argument x.*stretto.numpy"),
        (lambda x, n: np.sin(x), "the argument x.*stretto.numpy"),
        (lambda x, n: x.item(), "the argument x"),
        (
            lambda x, n: (x + n).tolist(),
            r"computed by add at .*test_jit.py.*from the argument x, the argument n",
        ),
        (lambda x, n: bool(snp.any(x * 2 > 1)), "computed by .* from the argument x"),
        (lambda x, n: snp.zeros((n, 2)), "the argument n.*static_argnums"),
    ],
)
def test_a_traced_value_used_in_python_is_named(f, message):
    with pytest.raises(st.errors.TracedValueError, match=f"(?s){message}"):
        st.jit(f)(1.0, 2)


def test_loop_condition_is_named():
    def f(params):
        while params["w"][0] < 3:
            params["w"][0] += 1
        return params

    with pytest.raises(
        st.errors.TracedValueError, match=r"from the argument params\['w'\]\[0\].*while_loop"
    ):
        st.jit(f)({"w": [1.0]})


def test_escaped_tracers():
    kept = []
    f = st.jit(lambda x: kept.append(x * 2) or x)
    f(1.0)
    for use in (
        lambda v: v + 1,
        float,
        bool,
        lambda v: st.jit(lambda y: y + v)(1.0),
        st.jit(lambda y: y),
    ):
        with pytest.raises(
            st.errors.EscapedTracerError, match=r"outlived.*computed by mul.*the argument x"
        ):
            use(kept[0])


@pytest.mark.parametrize(
    "args, message",
    [
        ((1.0, "text"), "f: y must be an array or a number; got builtins.str"),
        (
            (1.0, {"a": [1, object()]}),
            r"f: y\['a'\]\[1\] must be an array or a number; got builtins.object",
        ),
        ((np.array(["a"]), 1.0), "dtype <U1"),
    ],
)
def test_arguments_that_are_no_arrays_are_named(args, message):
    def f(x, y):
        return x

    with pytest.raises(TypeError, match=message):
        st.jit(f)(*args)


def test_results_that_are_no_arrays_are_named():
    def f(x):
        return {"x": x, "name": "text"}

    with pytest.raises(TypeError, match=r"f: the result\['name'\] must be an array .*builtins.str"):
        st.jit(f)(1.0)


def test_errors_of_the_function_leave_no_trace():
    fail = [True]

    def f(x):
        if fail[0]:
            raise KeyError("later")
        return x + 1

    g = st.jit(f)
    with pytest.raises(KeyError, match="later"):
        g(1.0)
    fail[0] = False
    assert float(g(1.0)) == 2
    assert float(snp.float32(1) + 1) == 2  # the interpreter at rest is in place again
