"""vmap: where axes lie and go, what stays unmapped, agreement with loops, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@settings(max_examples=40, deadline=None)
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


def test_results_that_do_not_vary_are_repeated():
    out = st.vmap(lambda x: (3.0, snp.arange(2), x), out_axes=(0, 1, 0))(np.ones(4))
    assert [o.shape for o in out] == [(4,), (2, 4), (4,)]
    assert st.vmap(lambda x: None)(np.ones(4)) is None
    assert st.vmap(lambda x: x)(np.ones((0, 3))).shape == (0, 3)
    with pytest.raises(
        ValueError, match=r"out_axes is None for a result that differs.*float32\[4\]"
    ):
        st.vmap(lambda x: x, out_axes=None)(np.ones(4))


def test_unmapped_work_stays_unmapped():
    def f(w, x):
        shared = snp.sin(w @ w)
        return shared @ x

    program = st.make_graph(st.vmap(f, (None, 0)))(snp.ones((3, 3)), snp.ones((5, 3)))
    by_name = {e.primitive.name: e.outputs[0].type.shape for e in program.equations}
    assert by_name["sin"] == (3, 3)
    assert len(program.equations) <= 5


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
