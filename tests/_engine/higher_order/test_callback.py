"""Calls of Python functions from programs: laws, effects, order, derivatives, vectorization."""

import gc
import weakref

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import state
from stretto._engine.core.primitive import CALLBACK, ORDERED
from stretto._engine.core.program import check
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.callback import (
    DebugCallback,
    IoCallback,
    PureCallback,
    declared_types,
    separate,
)
from stretto.laws import c64, f32, f64, i32, law

X, XS = snp.array(2.0), snp.array([1.0, 2.0, 3.0])
SCALAR = st.ShapeDtypeStruct((), np.float32)
WAYS = {"eager": lambda f: f, "jit": st.jit}


@pytest.fixture(params=list(WAYS))
def way(request):
    return WAYS[request.param]


def like(x):
    return st.ShapeDtypeStruct(x.shape, x.dtype)


def doubled(x, y):
    return np.asarray(x) * 2 + np.asarray(y)


def pure(method):
    def f(x, y):
        return st.pure_callback(doubled, like(x), x, y, vmap_method=method)

    return f


def io(x):
    return st.io_callback(lambda x: np.asarray(x) + np.asarray(1, x.dtype), like(x), x)


def looked_at(x):
    st.debug.callback(lambda x: None, x)
    return snp.sin(x) * x


LAWS = [
    *[
        law(PureCallback, pure(method), f32(3), f32(3), derivative=False)
        for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")
    ],
    # An argument that is not mapped has no axis of examples: the function must see to it itself.
    law(PureCallback, pure("legacy_vectorized"), f32(3), f32(3), derivative=False, mapped=False),
    law(PureCallback, pure("sequential"), i32(2, 3), i32(2, 3), derivative=False),
    law(PureCallback, pure("sequential"), c64(2), c64(2), derivative=False),
    law(PureCallback, pure("sequential"), f64(), f64(), derivative=False),
    law(IoCallback, io, f32(2), derivative=False),
    law(IoCallback, io, i32(), derivative=False),
    law(DebugCallback, looked_at, f32(3)),
    law(DebugCallback, looked_at, f64()),
]


@pytest.mark.parametrize("check", LAWS, ids=str)
def test_laws(check):
    check.check()


class Log:
    """Notes what it is called with, as numbers."""

    def __init__(self):
        self.seen = []

    def __call__(self, *args):
        self.seen.append(args[0].tolist() if len(args) == 1 else [a.tolist() for a in args])

    def taken(self):
        seen, self.seen = self.seen, []
        return seen


def test_pure_calls_with_trees(way):
    def f(d, k):
        return {"sum": np.asarray(d["x"]) + np.asarray(k), "none": (None, 2.5)}

    results = {"sum": SCALAR, "none": (None, SCALAR)}
    out = way(lambda x: st.pure_callback(f, results, {"x": x}, k=x + 1))(X)
    assert out == {"sum": 5.0, "none": (None, 2.5)}
    assert all(leaf.type.weak_type is False for leaf in st.tree.leaves(out))


def test_pure_calls_are_dropped_where_nobody_needs_them():
    log = Log()

    def f(x):
        st.pure_callback(lambda x: log(x) or x, SCALAR, x)
        return x + 1

    assert st.jit(f)(X) == 3
    assert log.taken() == []
    assert st.make_graph(f)(X).effects == frozenset()


def test_what_a_call_returned_may_be_written_over_afterwards():
    """A function may have one array for all its results; one of Stretto's is taken as it is."""
    buffer = np.zeros(3, np.float32)

    def filled(x):
        buffer[:] = x
        return buffer

    call = lambda x: st.pure_callback(filled, array_type((3,), np.dtype("float32")), x)
    first, second = call(1.0), call(2.0)
    np.testing.assert_array_equal((first, second), [[1, 1, 1], [2, 2, 2]])


def test_an_eager_call_is_made_once():
    log = Log()

    def fails(x):
        log(x)
        raise RuntimeError("not again")

    with pytest.raises(RuntimeError, match="not again"):
        st.pure_callback(fails, SCALAR, X)
    assert log.taken() == [2.0]


SHAPES = {
    "sequential": [((), ())] * 3,
    "sequential_unrolled": [((), ())] * 3,
    "expand_dims": [((3,), (1,))],
    "broadcast_all": [((3,), (3,))],
    "legacy_vectorized": [((3,), ())],
}


@pytest.mark.parametrize("method", SHAPES)
def test_what_a_mapped_pure_call_is_given(method, way):
    seen = []

    def f(x, y):
        seen.append((x.shape, y.shape))
        return doubled(x, y)

    out = way(st.vmap(lambda x: st.pure_callback(f, SCALAR, x, 10.0, vmap_method=method)))(XS)
    np.testing.assert_array_equal(out, [12, 14, 16])
    assert seen == SHAPES[method]


@pytest.mark.parametrize(
    "method, calls",
    [("sequential", 6), ("sequential_unrolled", 6), ("expand_dims", 1), ("broadcast_all", 1)],
)
def test_a_pure_call_mapped_twice(method, calls, way):
    count = []

    def f(x, y):
        count.append(1)
        return doubled(x, y)

    one = lambda y: st.vmap(lambda x: st.pure_callback(f, SCALAR, x, y, vmap_method=method))(XS)
    out = way(st.vmap(one))(snp.array([10.0, 20.0]))
    np.testing.assert_array_equal(out, [[12, 14, 16], [22, 24, 26]])
    assert len(count) == calls


def test_mapping_needs_a_method(way):
    with pytest.raises(MissingRuleError, match="pass vmap_method='sequential'"):
        way(st.vmap(lambda x: st.pure_callback(np.sin, SCALAR, x)))(XS)
    with pytest.raises(ValueError, match=r"vmap_method must be one of 'sequential'.*got 'fast'"):
        st.pure_callback(np.sin, SCALAR, X, vmap_method="fast")


@st.custom_jvp
def sine(x):
    return st.pure_callback(np.sin, like(x), x, vmap_method="expand_dims")


@sine.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return sine(x), cosine(x) * dx


@st.custom_jvp
def cosine(x):
    return st.pure_callback(np.cos, like(x), x, vmap_method="expand_dims")


@cosine.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return cosine(x), -sine(x) * dx


def test_derivatives_by_rules_around_a_pure_call(way):
    x = np.asarray(XS)
    np.testing.assert_allclose(way(st.vmap(st.grad(sine)))(XS), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(way(st.vmap(st.grad(st.grad(sine))))(XS), -np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(way(st.jacfwd(sine))(XS), np.diag(np.cos(x)), rtol=1e-6)
    np.testing.assert_allclose(way(st.jacrev(sine))(XS), np.diag(np.cos(x)), rtol=1e-6)
    steps = lambda x: st.lax.scan(lambda c, _: (sine(c), None), x, None, length=2)[0]
    want = np.cos(np.sin(2.0)) * np.cos(2.0)
    np.testing.assert_allclose(way(st.grad(steps))(X), want, rtol=1e-6)


def test_derivatives_without_rules_are_refused(way):
    with pytest.raises(MissingRuleError, match=r"pure_callback has no jvp rule.*custom_jvp"):
        way(st.grad(lambda x: st.pure_callback(np.sin, SCALAR, x)))(X)
    with pytest.raises(MissingRuleError, match=r"io_callback has no jvp rule.*stop_gradient"):
        way(st.grad(io))(X)
    constant = lambda y: y * st.pure_callback(np.sin, SCALAR, X)
    assert way(st.grad(constant))(X) == np.sin(2.0, dtype="f")
    assert way(st.grad(lambda x: x * io(st.lax.stop_gradient(x))))(X) == 3.0


def test_a_pure_call_on_tangents(way):
    @st.custom_jvp
    def thrice(x):
        return 3 * x

    @thrice.defjvp
    def _(primals, tangents):
        return thrice(*primals), st.pure_callback(lambda t: 3 * t, SCALAR, tangents[0])

    assert way(lambda x: st.jvp(thrice, (x,), (1.0,)))(X) == (6.0, 3.0)
    assert way(lambda x: st.linearize(thrice, x)[1](2.0))(X) == 6.0
    with pytest.raises(MissingRuleError, match=r"no transpose rule.*custom_vjp"):
        way(st.grad(thrice))(X)


def test_io_calls_happen_though_nobody_needs_them(way):
    log = Log()

    def f(x):
        st.io_callback(log, None, x)
        return x + 1

    g = way(f)
    assert (g(X), g(X + 1)) == (3, 4)
    assert log.taken() == [2.0, 3.0]
    assert st.make_graph(f)(X).effects == {CALLBACK}


def test_io_calls_give_results(way):
    count = []

    def numbered(x):
        count.append(1)
        return np.float32(len(count))

    f = way(lambda x: x + st.io_callback(numbered, SCALAR, x))
    assert [float(f(X)) for _ in range(3)] == [3, 4, 5]


def test_mapped_io_calls_are_made_for_each_example(way):
    log = Log()

    def f(x):
        return st.io_callback(lambda x: log(x) or 2 * x, SCALAR, x)

    np.testing.assert_array_equal(way(st.vmap(f))(XS), [2, 4, 6])
    assert sorted(log.taken()) == [1, 2, 3]


def test_ordered_io_calls_are_not_mapped(way):
    f = lambda x: st.io_callback(lambda x: None, None, x, ordered=True)
    with pytest.raises(MissingRuleError, match=r"examples have no order.*stretto\.lax\.map"):
        way(st.vmap(f))(XS)


def ordered_everywhere(log):
    """Calls in nested calls, scans, branches, loops and conditions of loops."""

    def note(tag):
        return lambda x: log.seen.append((tag, int(x)))

    def called(tag, x):
        st.io_callback(note(tag), None, x, ordered=True)

    @st.jit
    def inner(x):
        called("inner", x)
        return x + 1

    def third(c):
        called("third", c)
        return c + 1

    def condition(c):
        called("condition", c)
        return c % 4 != 0

    def step(c):
        called("step", c)
        return c + 1

    def body(c, _):
        called("body", c)
        c = st.lax.cond(c % 3 == 0, third, inner, inner(c))
        return st.lax.while_loop(condition, step, c), None

    def f(x):
        x = inner(x)
        st.debug.callback(note("debug"), x, ordered=True)
        return inner(st.lax.scan(body, x, None, length=4)[0])

    return f


def test_ordered_calls_come_in_the_order_of_the_program():
    log = Log()
    f = ordered_everywhere(log)
    x = snp.array(1)
    with st.disable_jit():
        want, order = int(f(x)), log.taken()
    assert {tag for tag, _ in order} == {"inner", "third", "condition", "step", "body", "debug"}
    assert st.make_graph(f)(x).effects == {ORDERED}
    check(st.make_graph(f)(x))
    g = st.jit(f)
    for run in (f, g, g, st.checkpoint(f), st.jit(st.checkpoint(f))):
        assert int(run(x)) == want
        assert log.taken() == order


def test_order_across_calls():
    log = Log()
    f = st.jit(lambda x: st.io_callback(log, None, x, ordered=True))
    for i in range(20):
        f(snp.array(i))
    assert log.taken() == list(range(20))


def test_equal_programs_call_their_own_functions():
    one, other = Log(), Log()
    for log in (one, other):
        st.jit(lambda x, log=log: st.io_callback(log, None, x))(X)
    assert (one.taken(), other.taken()) == ([2.0], [2.0])


def test_a_signature_is_traced_and_compiled_once():
    traced, log = [], Log()

    @st.jit
    def f(x):
        traced.append(1)
        st.io_callback(log, None, x)

    for _ in range(3):
        f(X)
    assert (len(traced), len(log.taken())) == (1, 3)


def test_what_is_no_function(way):
    with pytest.raises(TypeError, match="pure_callback: callback must be a function, got int"):
        way(lambda x: st.pure_callback(3, SCALAR, x))(X)
    with pytest.raises(TypeError, match=r"debug\.callback: callback must be a function, got int"):
        way(lambda x: st.debug.callback(3, x))(X)
    with pytest.raises(ValueError, match="sharding must be None"):
        st.io_callback(np.sin, SCALAR, X, sharding="cpu")
    with pytest.raises(TypeError, match=r"an array or a number; got builtins\.str"):
        st.pure_callback(np.sin, SCALAR, "x")


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint64", "float16", "complex128", "bfloat16", "float8_e4m3fn", "int4"],
)
def test_dtypes_pass_both_ways(dtype, way):
    with st.enable_x64():
        x = snp.array([0, 1, 1]).astype(dtype)
        got = way(lambda x: st.pure_callback(lambda x: x, like(x), x))(x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(got), np.asarray(x))


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_shapes_and_layouts_pass_both_ways(shape, way):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    f = lambda x: st.pure_callback(lambda x: np.asarray(x).T, like(x.T), x)
    np.testing.assert_array_equal(way(f)(x), x.T)
    np.testing.assert_array_equal(way(lambda x: f(x.T))(x), x)


def test_a_function_goes_when_its_program_goes():
    class Model:
        def __init__(self):
            self.run = st.jit(lambda x: st.pure_callback(self.called, SCALAR, x))

        def called(self, x):
            return x

    model = Model()
    assert model.run(X) == 2.0
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


HOST_X = snp.array(2.0)


def giving(result, declares=SCALAR):
    return lambda x: st.pure_callback(lambda x: result, declares, x)


def test_it_is_given_arrays_that_nobody_writes(way):
    seen = []
    way(lambda x: st.io_callback(lambda a, n: seen.extend([a, n]), None, x, n=3))(snp.ones(3))
    assert all(isinstance(x, st.Array) for x in seen)
    assert [str(x) for x in seen] == ["[1. 1. 1.]", "3"]
    assert not np.asarray(seen[0]).flags.writeable
    assert [x.weak_type for x in seen] == [False, True]


def test_what_it_is_given_stays_as_it_was():
    kept = []

    @st.jit
    def f(x):
        st.io_callback(kept.append, None, x * 2)
        return st.lax.fori_loop(0, 100, lambda i, c: c * 1.5, x * 2)

    for i in range(5):
        f(snp.full((1000,), float(i)))
    for i, x in enumerate(kept):
        np.testing.assert_array_equal(x, np.full(1000, 2.0 * i))


@pytest.mark.parametrize(
    "result", [1, True, 2.5, np.float32(2.5), HOST_X, np.ones((), "f")], ids=repr
)
def test_results_that_fit(result, way):
    out = way(giving(result))(HOST_X)
    assert out == float(result)
    assert (out.dtype, out.weak_type) == (np.float32, False)


@pytest.mark.parametrize(
    "result, problem",
    [
        (
            np.float64(1),
            r"must return float32\[\] for result.*it returned float64\[\]: convert it with .ast",
        ),
        (1j, r"it returned complex64"),
        (np.ones(3, "f"), r"it returned float32\[3\]: declare"),
        (np.ones((1, 1), "f"), r"it returned float32\[1,1\]: reshape it with .reshape\(\(\)\), or"),
        ((1.0, 2.0), "part at result: a leaf and a tuple of length 2"),
        (None, "part at result"),
        ("text", "float32|dtype"),
    ],
    ids=lambda x: repr(x) if not isinstance(x, np.ndarray) else "array",
)
def test_results_that_do_not_fit(result, problem, way):
    with pytest.raises(TypeError, match=problem):
        way(giving(result))(HOST_X)


def test_a_number_of_a_wider_kind_does_not_fit(way):
    with pytest.raises(TypeError, match=r"pure_callback: <lambda> must return int32\[\]"):
        way(giving(1.5, st.ShapeDtypeStruct((), np.int32)))(HOST_X)
    with pytest.raises(TypeError, match=r"must return float32\[2\].*it returned float32"):
        way(giving(1.5, st.ShapeDtypeStruct((2,), np.float32)))(HOST_X)


def test_results_are_named_by_their_place(way):
    results = {"a": SCALAR, "b": [SCALAR]}
    with pytest.raises(TypeError, match=r"for result\['b'\]\[0\]"):
        way(giving({"a": 1.0, "b": [np.ones(3)]}, results))(HOST_X)


def test_declared_types():
    types, structure = declared_types({"a": HOST_X, "b": None}, "who")
    assert types == [array_type((), np.dtype("f"))]
    assert st.tree.unflatten(structure, [1]) == {"a": 1, "b": None}
    with pytest.raises(TypeError, match=r"who: result_shape_dtypes must be a tree .* got int for"):
        declared_types((SCALAR, 3), "who")
    wide = st.ShapeDtypeStruct((), np.float64)
    with pytest.raises(ValueError, match=r"declares float64 for result.*declare float32, or run"):
        declared_types(wide, "who")
    with st.enable_x64():
        assert declared_types(wide, "who")[0][0].dtype == np.float64


def test_arrays_and_other_leaves_are_told_apart():
    values, static = separate([1.5, "text", np.ones(2), 10**30, len])
    assert [v.shape for v in values] == [(), (2,)]
    assert static == {1: "text", 3: 10**30, 4: len}


def test_it_runs_at_rest_with_the_settings_of_its_trace(way):
    seen = []

    def look(x):
        seen.append((state.interpreter is state.eager, st.config.enable_x64, snp.ones(()).dtype))
        return x

    with st.enable_x64():
        f = way(lambda x: st.io_callback(look, x, x))
        f(np.float64(1))
        g = st.jit(lambda x: st.jvp(lambda y: y * st.jit(f)(x), (x,), (x,)))
        g(np.float64(1))
        # A derivative with work at rest beneath it.
        st.jvp(lambda y: y * st.jit(f)(np.float64(1)), (1.0,), (1.0,))
    assert seen == [(True, True, np.float64)] * 3


def test_settings_of_the_trace_and_not_of_the_call():
    seen = []
    f = st.jit(lambda x: st.io_callback(lambda x: seen.append(st.config.enable_x64), None, x))
    with st.enable_x64():
        compiled = f.lower(np.float32(1)).compile()
    compiled(np.float32(1))
    assert seen == [True]
    assert not st.config.enable_x64


def test_it_may_use_everything(way):
    def f(x):
        return st.grad(lambda y: (snp.sin(y) * st.jit(snp.exp)(y)).sum())(x)

    x = snp.array([0.5, 1.0])
    got = way(lambda x: st.pure_callback(f, x, x))(x)
    np.testing.assert_allclose(got, f(x), rtol=1e-6)


def test_a_traced_value_is_no_result(way):
    left = []
    st.jit(left.append)(HOST_X)
    with pytest.raises(st.errors.EscapedTracerError):
        way(giving(left[0]))(HOST_X)


@pytest.mark.parametrize(
    ("method", "size", "loops", "calls"),
    [
        ("sequential", 3, 1, 1),
        ("sequential_unrolled", 3, 0, 3),
        ("sequential_unrolled", 1, 0, 1),
        ("broadcast_all", 3, 0, 1),
    ],
)
def test_calls_one_after_another_are_a_loop_or_written_out(method, size, loops, calls):
    f = st.vmap(lambda x: st.pure_callback(np.sin, x, x, vmap_method=method))
    text = st.jit(f).lower(snp.ones(size)).as_text()
    assert (text.count("stablehlo.while"), text.count("custom_call")) == (loops, calls)
    assert st.vmap(f)(snp.ones((2, 0))).shape == (2, 0)


@pytest.mark.parametrize(
    "result", [np.array("a"), np.array([None]), np.array("2020-01-01", "M8[D]"), np.ones]
)
def test_what_is_no_array_of_numbers_is_refused(result):
    with pytest.raises(TypeError, match="is not one of the numeric types of arrays"):
        st.pure_callback(lambda x: result, st.ShapeDtypeStruct((), np.float32), 1.0)
