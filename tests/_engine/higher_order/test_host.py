"""A user's function as operations call it: what it is given, its settings, its results checked."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import state
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.host import declared, separate

X = snp.array(2.0)
SCALAR = st.ShapeDtypeStruct((), np.float32)
WAYS = {"eager": lambda f: f, "jit": st.jit}


@pytest.fixture(params=list(WAYS))
def way(request):
    return WAYS[request.param]


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


@pytest.mark.parametrize("result", [1, True, 2.5, np.float32(2.5), X, np.ones((), "f")], ids=repr)
def test_results_that_fit(result, way):
    out = way(giving(result))(X)
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
        way(giving(result))(X)


def test_a_number_of_a_wider_kind_does_not_fit(way):
    with pytest.raises(TypeError, match=r"pure_callback: <lambda> must return int32\[\]"):
        way(giving(1.5, st.ShapeDtypeStruct((), np.int32)))(X)
    with pytest.raises(TypeError, match=r"must return float32\[2\].*it returned float32"):
        way(giving(1.5, st.ShapeDtypeStruct((2,), np.float32)))(X)


def test_results_are_named_by_their_place(way):
    results = {"a": SCALAR, "b": [SCALAR]}
    with pytest.raises(TypeError, match=r"for result\['b'\]\[0\]"):
        way(giving({"a": 1.0, "b": [np.ones(3)]}, results))(X)


def test_declared_types():
    types, structure = declared({"a": X, "b": None}, "who")
    assert types == [array_type((), np.dtype("f"))]
    assert st.tree.unflatten(structure, [1]) == {"a": 1, "b": None}
    with pytest.raises(TypeError, match=r"who: result_shape_dtypes must be a tree .* got int for"):
        declared((SCALAR, 3), "who")
    wide = st.ShapeDtypeStruct((), np.float64)
    with pytest.raises(ValueError, match=r"declares float64 for result.*declare float32, or run"):
        declared(wide, "who")
    with st.enable_x64():
        assert declared(wide, "who")[0][0].dtype == np.float64


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
    st.jit(left.append)(X)
    with pytest.raises(st.errors.EscapedTracerError):
        way(giving(left[0]))(X)
