"""vmap: where axes lie and go, what stays unmapped, agreement with loops, refusals."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.program import Program
from stretto._engine.core.types import float0

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@settings(max_examples=40)
@given(hs.data())
def test_axes_in_and_out(data):
    """The function sees one example; its results are put where out_axes says."""
    axis = data.draw(hs.integers(-3, 2))
    other = data.draw(hs.sampled_from([None, *range(-3, 3)]))
    size = A.shape[axis]
    y = A if other is None else np.moveaxis(np.moveaxis(A, axis, 0), 0, other)
    out = data.draw(hs.integers(-3, 2))
    seen = []

    def f(x, y):
        seen.append((x.shape, y.shape))
        return x * 2 if other is None else x + y, {"sum": x.sum()}

    got = st.vmap(f, (axis, other), (out, {"sum": data.draw(hs.integers(-1, 0))}))(A, y)
    rows = np.moveaxis(A, axis, 0)
    one = rows * 2 if other is None else rows + np.moveaxis(y, other, 0)
    np.testing.assert_array_equal(got[0], np.moveaxis(one, 0, out))
    np.testing.assert_array_equal(got[1]["sum"], [r.sum() for r in rows])
    assert seen[0][0] == rows.shape[1:] and len(seen) == 1
    assert size == rows.shape[0]


def test_trees_of_axes():
    tree = {"a": A, "b": (np.ones(4, np.float32), np.float32(3.0))}
    f = lambda t, s: (t["a"].sum() + t["b"][0] * t["b"][1] + s["x"], t["b"][1])
    shared = {"x": 1.0}
    want = A.sum((0, 1)) + 3 + 1
    for axes in (
        ({"a": 2, "b": (0, None)}, None),
        [{"a": -1, "b": (-1, None)}, {"x": None}],
        ({"a": 2, "b": (0, None)}, {"x": None}),
    ):
        np.testing.assert_array_equal(st.vmap(f, axes, (0, None))(tree, shared)[0], want)
    _, weight = st.vmap(f, ({"a": 2, "b": (0, None)}, None), (0, None))(tree, shared)
    assert weight.shape == () and float(weight) == 3
    members = [tree, tree]
    stacked = st.stack(members)
    np.testing.assert_array_equal(st.vmap(lambda t: t["a"].sum())(stacked), [A.sum()] * 2)


def test_keyword_arguments_are_mapped_along_axis_0():
    f = lambda x, *, y, t: x * y + t["z"]
    got = st.vmap(f, (None,))(2.0, y=np.arange(3.0), t={"z": np.ones(3)})
    np.testing.assert_array_equal(got, [1, 3, 5])


def test_axis_size():
    f = lambda x: x + 1
    np.testing.assert_array_equal(st.vmap(f, None, axis_size=3)(1.0), [2, 2, 2])
    assert float(st.vmap(f, None, None, axis_size=3)(1.0)) == 2
    assert st.vmap(lambda: snp.arange(2), axis_size=2)().shape == (2, 2)
    assert st.vmap(f, axis_size=2)(np.ones(2)).shape == (2,)


def test_axis_size_that_varies():
    def f(x):
        return st.vmap(lambda y: y * 2, axis_size=x.shape[0])(x), st.vmap(
            lambda: snp.float32(1), axis_size=x.shape[0]
        )().sum()

    doubled, n = st.jit(f, dynamic_axes=[{0: "n"}])(np.ones(5, np.float32))
    np.testing.assert_array_equal(doubled, np.full(5, 2))
    assert float(n) == 5
    longer = lambda x: st.vmap(lambda y: y, axis_size=x.shape[0] + 1)(x)
    with pytest.raises(ValueError, match="axis_size"):
        st.jit(longer, dynamic_axes=[{0: "n"}])(np.ones(5))


def test_results_that_do_not_vary_are_repeated():
    out = st.vmap(lambda x: (3.0, snp.arange(2), x), out_axes=(0, 1, 0))(np.ones(4))
    assert [o.shape for o in out] == [(4,), (2, 4), (4,)]
    assert st.vmap(lambda x: None)(np.ones(4)) is None
    assert st.vmap(lambda x: x)(np.ones((0, 3))).shape == (0, 3)
    with pytest.raises(
        ValueError, match=r"out_axes is None for a result that differs.*float32\[4\]"
    ):
        st.vmap(lambda x: x, out_axes=None)(np.ones(4))


def test_unmapped_numbers_are_sizes():
    pooled = lambda x, n: x.reshape(n, -1).mean(1)
    for way in (lambda f: f, st.jit):
        out = way(lambda x: st.vmap(pooled, (0, None))(x, 2))(snp.arange(8.0).reshape(2, 4))
        np.testing.assert_array_equal(out, [[0.5, 2.5], [4.5, 6.5]])
    kept = st.vmap(lambda x, n: n, (0, None), None)(snp.ones(2), 2.5)
    assert kept == 2.5 and st.vmap(lambda n: n, None, axis_size=2)(True).tolist() == [True, True]


def test_unmapped_work_stays_unmapped():
    def f(w, x):
        shared = snp.sin(w @ w)
        return shared @ x

    program = st.make_graph(st.vmap(f, (None, 0)))(snp.ones((3, 3)), snp.ones((5, 3)))
    by_name = {e.primitive.name: e.outputs[0].type.shape for e in program.equations}
    assert by_name["sin"] == (3, 3)
    assert len(program.equations) <= 5


def equations(program, name):
    """All equations of this name, also those in programs held by others."""
    for e in program.equations:
        if e.primitive.name == name:
            yield e
        for _, value in e.primitive.parameters():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Program):
                    yield from equations(inner, name)


def shapes(fun, in_axes, *args):
    """Of each equation in the mapped function's program, by name: its first output's shape."""
    program = st.make_graph(st.vmap(fun, in_axes))(*args)
    return lambda name: [e.outputs[0].type.shape for e in equations(program, name)]


V, M = np.ones(3, np.float32), np.ones((5, 3), np.float32)


def test_unmapped_work_in_calls_stays_unmapped():
    shared = st.jit(lambda w, x: (snp.sin(w), x))
    of = shapes(lambda w, x: snp.exp(shared(w, x)[0]) + shared(w, x)[1], (None, 0), V, M)
    assert of("sin") == [(3,)] and of("exp") == [(3,)] and of("add") == [(5, 3)]
    slope = st.grad(lambda x, w: (snp.sin(w) * x).sum())
    assert shapes(slope, (0, None), M, V)("sin") == [(3,)]


@pytest.mark.parametrize("choose", ["cond", "switch"])
def test_a_branch_that_all_take_stays_a_branch(choose):
    def f(p, w, x):
        branches = [lambda w, x: (snp.cos(w), x), lambda w, x: (snp.sin(w), x * 2)]
        if choose == "cond":
            return st.lax.cond(p > 0, *reversed(branches), w, x)
        return st.lax.switch(p, branches, w, x)

    one = st.vmap(f, (None, None, 0))
    program = st.make_graph(one)(1, V, M)
    (found,) = equations(program, "cond")
    assert found.inputs[0].type.shape == () and not list(equations(program, "select"))
    assert [v.type.shape for v in found.outputs] == [(3,), (5, 3)]
    assert [e.outputs[0].type.shape for e in equations(program, "sin")] == [(3,)]
    assert '"stablehlo.case"' in st.jit(one).lower(1, V, M).as_text()
    for p in (0, 1):
        for run in (one, st.jit(one)):
            w, x = run(p, V, M)
            np.testing.assert_allclose(w, [(np.cos, np.sin)[p](V)] * 5, rtol=1e-6)
            np.testing.assert_array_equal(x, M * (p + 1))


def test_a_scan_keeps_unmapped_what_no_example_changes():
    step = lambda w, x: st.lax.scan(
        lambda c, y: ((snp.sin(c[0]), c[1] + x * y), snp.cos(c[0])), (w, x), V
    )
    program = st.make_graph(st.vmap(step, (None, 0)))(V, M)
    (loop,) = equations(program, "scan")
    assert [v.type.shape for v in loop.outputs] == [(3,), (5, 3), (3, 3)]
    (sine,), (cosine,) = equations(program, "sin"), equations(program, "cos")
    assert sine.outputs[0].type.shape == cosine.outputs[0].type.shape == (3,)


def test_a_while_loop_with_an_unmapped_condition_stays_one():
    def f(n, w, x):
        def body(state):
            i, shared, own = state
            return i + 1, snp.sin(shared), own * 2

        return st.lax.while_loop(lambda s: s[0] < n, body, (0, w, x))

    one = st.vmap(f, (None, None, 0), (None, 0, 0))
    program = st.make_graph(one)(3, V, M)
    (loop,) = equations(program, "while")
    assert [v.type.shape for v in loop.outputs] == [(), (3,), (5, 3)]
    assert loop.primitive.cond.out_types[0].shape == ()
    assert not list(equations(program, "select"))
    for run in (one, st.jit(one)):
        i, w, x = run(3, V, M)
        assert int(i) == 3
        np.testing.assert_allclose(w, [np.sin(np.sin(np.sin(V)))] * 5, rtol=1e-6)
        np.testing.assert_array_equal(x, 8 * M)


def test_results_of_shared_work_are_shared():
    """What is repeated at the end, for out_axes, is not repeated before."""
    program = st.make_graph(st.vmap(lambda w, x: (snp.sin(w), x), (None, 0), (None, 0)))(V, M)
    assert program.out_types[0].shape == (3,)
    program = st.make_graph(st.vmap(lambda w, x: snp.sin(w), (None, 0)))(V, M)
    assert [e.primitive.name for e in program.equations] == ["sin", "broadcast_in_dim"]


def test_arguments_come_in_the_order_of_jax():
    f = lambda x: st.lax.psum(x, "i")
    np.testing.assert_array_equal(st.vmap(f, 0, None, "i")(np.ones(4)), 4)
    np.testing.assert_array_equal(st.vmap(f, None, 0, "i", 3)(1.0), [3, 3, 3])
    np.testing.assert_array_equal(st.vmap(f, 0, 0, "i", 2, "data")(np.ones(2)), [2, 2])
    names = list(inspect.signature(st.vmap).parameters)
    assert names[:6] == ["fun", "in_axes", "out_axes", "axis_name", "axis_size", "spmd_axis_name"]


def test_spmd_axis_name_changes_nothing():
    for name in (None, "data", ("data", "model"), 3):
        run = st.vmap(lambda x: x * 2, spmd_axis_name=name)
        np.testing.assert_array_equal(run(V), 2 * V)
        with pytest.raises(NameError, match="unbound axis name 'data'"):
            st.vmap(lambda x: st.lax.psum(x, "data"), spmd_axis_name=name)(V)


def test_operations_run_once_for_all():
    f = lambda x: snp.tanh(x).sum()
    small, large = (st.make_graph(st.vmap(f))(snp.ones((n, 2))) for n in (2, 1000))
    assert len(small.equations) == len(large.equations)


@pytest.mark.parametrize(
    "wrap",
    [
        st.vmap,
        lambda f: st.jit(st.vmap(f)),
        lambda f: st.vmap(st.jit(f)),
        lambda f: st.vmap(st.vmap(f)),
        lambda f: st.jit(st.vmap(st.jit(st.vmap(f, 1, 1)), 1, 1)),
    ],
)
def test_is_the_loop(wrap):
    f = lambda x: snp.sin(x) * snp.where(x > 10, x, -x)
    np.testing.assert_allclose(wrap(f)(A), f(A), rtol=1e-6)


def test_nested_with_different_arguments():
    f = lambda a, b: a @ b
    b = np.arange(8, dtype=np.float32).reshape(2, 4)
    every = st.vmap(st.vmap(f, (None, 0)), (0, None))
    np.testing.assert_array_equal(every(A, b), np.einsum("ijk,lk->ilj", A, b))
    np.testing.assert_array_equal(st.jit(every)(A, b), every(A, b))


def test_closures_over_outer_examples():
    f = lambda x: st.vmap(lambda y: x * y + x)(snp.arange(3.0))
    np.testing.assert_array_equal(st.vmap(f)(snp.arange(2.0)), [[0, 0, 0], [1, 2, 3]])
    g = lambda x: st.vmap(lambda y: x)(snp.arange(3.0)).sum()
    np.testing.assert_array_equal(st.vmap(st.grad(g))(snp.ones(2)), [3, 3])


def test_sizes_that_differ_are_listed():
    def predict(params, x):
        return x

    params = [(np.ones((3, 2)), np.ones(3)), (np.ones((4, 3)), np.ones(4))]
    with pytest.raises(ValueError) as caught:
        st.vmap(predict, (0, None))([params, params, params], 1.0)
    lines = str(caught.value).splitlines()
    assert lines[0] == "vmap got inconsistent sizes for array axes to be mapped:"
    assert (
        "6 leaves have size 3, for example params[0][0][0], of type float32[3,2], along axis 0"
        in lines[1]
    )
    assert (
        "6 leaves have size 4, for example params[0][1][0], of type float32[4,3], along axis 0"
        in lines[2]
    )
    assert "The argument params is a list of 3 trees of one structure" in lines[3]
    assert "stretto.stack(params)" in lines[3] and len(lines) == 4
    with pytest.raises(ValueError, match=r"(?s)size 2, for example x.*\* axis_size is 3"):
        st.vmap(lambda x: x, axis_size=3)(np.ones(2))


def one(x, y):
    return x


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: st.vmap(one)(1.0, np.ones(2)),
            ValueError,
            r"maps axis 0 of x, which has type float32\[\]: it has 0 axes",
        ),
        (
            lambda: st.vmap(one, (0, 2))(np.ones(2), np.ones((2, 2))),
            ValueError,
            "maps axis 2 of y.*2 axes",
        ),
        (
            lambda: st.vmap(one, (0, -3))(np.ones(2), np.ones((2, 2))),
            ValueError,
            "maps axis -3 of y",
        ),
        (
            lambda: st.vmap(one, (0,))(np.ones(2), np.ones(2)),
            ValueError,
            "in_axes has 1 entries, but one was called with 2",
        ),
        (lambda: st.vmap(one, "0"), TypeError, "in_axes must be an int, None, or a tuple.*str"),
        (
            lambda: st.vmap(one, ("a", 0))(np.ones(2), np.ones(2)),
            TypeError,
            "entry of in_axes must be an int or None, got 'a' for x",
        ),
        (
            lambda: st.vmap(one, ({"b": 0}, 0))({"a": np.ones(2)}, np.ones(2)),
            ValueError,
            r"in_axes must be a prefix.*in_axes\[0\]",
        ),
        (lambda: st.vmap(one, None)(1.0, 2.0), ValueError, "nothing is mapped"),
        (
            lambda: st.vmap(one, axis_name=[1]),
            TypeError,
            "axis_name must be hashable, such as a string; got list",
        ),
        (
            lambda: st.vmap(one, spmd_axis_name={}),
            TypeError,
            "spmd_axis_name must be hashable.*got dict",
        ),
        (
            lambda: st.vmap(one, None, axis_size="3"),
            TypeError,
            "axis_size must be an integer, got '3'",
        ),
        (lambda: st.vmap(one, None, axis_size=-1), ValueError, "must not be negative, got -1"),
        (
            lambda: st.vmap(one, axis_name="i", chunk_size=2),
            ValueError,
            "chunk_size keeps examples apart, while axis_name='i' is for combining them",
        ),
        (
            lambda: st.vmap(one, out_axes=2)(np.ones(2), np.ones(2)),
            ValueError,
            "axis 2 in a result of 1 axes",
        ),
        (
            lambda: st.vmap(one, out_axes="x")(np.ones(2), np.ones(2)),
            TypeError,
            "entry of out_axes",
        ),
        (
            lambda: st.vmap(one, out_axes=(0, 0))(np.ones(2), np.ones(2)),
            ValueError,
            "out_axes must be a prefix",
        ),
        (
            lambda: st.vmap(one)(np.ones(2), "a"),
            TypeError,
            "vmap of one: y must be an array or a number",
        ),
        (
            lambda: st.vmap(lambda x: "a")(np.ones(2)),
            TypeError,
            "the result must be an array or a number",
        ),
        (
            lambda: st.vmap(lambda x: x if x > 0 else -x)(np.ones(2)),
            st.errors.TracedValueError,
            "one of 2 examples that vmap maps over.*cond",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call()


def test_escaped_tracer():
    kept = []
    st.vmap(lambda x: (kept.append(x), x)[1])(np.ones(2))
    with pytest.raises(st.errors.EscapedTracerError, match="one of 2 examples"):
        kept[0] + 1


@pytest.mark.parametrize("in_axes", [0, (0, 0), (0, None), [0, 1]])
def test_float0_zeros_are_mapped_along(in_axes):
    shape = {None: (4,), 0: (3, 4), 1: (4, 3)}[in_axes if in_axes == 0 else in_axes[1]]
    seen = []

    def f(x, t):
        seen.append((t.dtype, t.shape))
        return x, t

    out, t = st.vmap(f, in_axes)(snp.ones(3), np.zeros(shape, float0))
    assert seen == [(float0, (4,))]
    assert out.shape == (3,)
    assert (t.dtype, t.shape) == (float0, (3, 4))


def test_the_names_of_arguments_are_found_when_they_are_needed(monkeypatch):
    asked = []
    signature = inspect.Signature.from_callable
    monkeypatch.setattr(inspect, "signature", lambda f: asked.append(f) or signature(f))
    f = lambda x, y: x + y
    for axes in (0, (0, 0), (0, None), [0, 0]):
        st.vmap(f, in_axes=axes)(A, A)
    assert asked == []
    with pytest.raises(ValueError, match="1 leaf has size 3, for example y, of type"):
        st.vmap(f)(A, A[0])
    assert asked


@pytest.mark.parametrize("unmapped", [2.5, np.float32(-0.0), np.full(3, 2.5, np.float32)])
def test_what_shows_one_element_everywhere_is_repeated_at_once(unmapped):
    one = lambda x: x * snp.asarray(unmapped)
    got = np.asarray(st.vmap(one, in_axes=1, out_axes=1)(A[0, :, :3]))
    want = A[0, :, :3] * (unmapped if np.ndim(unmapped) == 0 else unmapped[:, None])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


UNMAPPED = [
    (lambda f, x: f(x), snp.sin),
    (lambda f, x: f["f"](x * f["w"]), {"f": snp.sin, "w": 2.0}),
    (lambda name, x: getattr(snp, name)(x), "cos"),
    (lambda dtype, x: x.astype(dtype), np.float16),
    (lambda dtype, x: x.astype(dtype), snp.bfloat16),
    (lambda things, x: x * len(things[0]), [{1, 2}]),
]


@pytest.mark.parametrize(("f", "shared"), UNMAPPED)
def test_what_all_share_need_not_be_an_array(f, shared):
    x = snp.arange(3.0)
    mapped = st.vmap(f, in_axes=(None, 0))
    want = snp.stack([f(shared, v) for v in x])
    np.testing.assert_array_equal(mapped(shared, x), want)
    np.testing.assert_allclose(st.jit(lambda x: mapped(shared, x))(x), want, rtol=1e-6)
    slope = st.grad(lambda x: snp.sum(mapped(shared, x).astype(float)))(x)
    each = [st.grad(lambda v: f(shared, v).astype(float))(v) for v in x]
    np.testing.assert_allclose(slope, each, rtol=1e-6)


def test_some_of_a_tree_need_not_be_arrays():
    f = st.vmap(lambda p, x: p["f"](x * p["w"]), in_axes=({"f": None, "w": 0}, 0))
    out = f({"f": snp.sin, "w": snp.arange(2.0)}, snp.ones(2))
    np.testing.assert_array_equal(out, snp.sin(snp.arange(2.0)))
    with pytest.raises(TypeError, match=r"vmap of function: p.* must be an array or a number"):
        st.vmap(lambda p, x: x)({"f": snp.sin}, snp.ones(2))
    with pytest.raises(TypeError, match=r"the result\[1\] must be an array or a number"):
        st.vmap(lambda x: (x, snp.sin), out_axes=(0, None))(snp.ones(2))


@pytest.mark.parametrize("axis", [1, -1, None])
def test_arguments_by_name_lie_along_axis_0_whatever_those_by_position_do(axis):
    f = lambda a, b: a.sum() + b.sum()
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones((3, 5), np.float32)
    expected = 5 + (a.sum(0) if axis is not None else a.sum() + np.zeros(3))
    np.testing.assert_array_equal(st.vmap(f, axis)(a, b=b), expected)


def test_lists_of_trees_are_advised_to_be_stacked_only_where_they_can_be():
    x, y = np.ones((2, 3)), np.ones(3)

    def advised(*args):
        with pytest.raises(ValueError, match="inconsistent sizes") as caught:
            st.vmap(lambda a, b: a)(*args)
        last = str(caught.value).splitlines()[-1]
        return last.split("stretto.stack")[1] if "stretto.stack" in last else None

    assert advised([x, y], x) == "(a)"
    assert advised(x, (y, y)) == "(b)"
    assert advised([x], y) is None  # there is one alone
    assert advised([x, {"y": y}], x) is None  # of several structures
    assert advised([(), ()], [x, [y]]) is None  # without leaves
    assert advised({"x": x, "y": y}, x) is None


@pytest.mark.parametrize(("size", "shape"), [(0, (0,)), (1, (1,)), (np.int32(2), (2,))])
def test_a_size_is_any_natural_number(size, shape):
    assert st.vmap(lambda: 1.0, axis_size=size)().shape == shape


def test_a_size_is_no_float():
    with pytest.raises(TypeError, match=r"axis_size must be an integer, got 2\.0"):
        st.vmap(lambda: 1.0, axis_size=2.0)


def test_ragged_arrays_go_with_neither_chunks_nor_names():
    ragged = st.ragged([snp.ones(2), snp.ones(3)])
    for options in ({"chunk_size": 1}, {"axis_name": "i"}):
        with pytest.raises(NotImplementedError, match="neither chunk_size nor axis_name"):
            st.vmap(lambda x: x, **options)(ragged)
