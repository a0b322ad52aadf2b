"""Looking at what a function does: its program, and the shapes of its results."""

import functools
import types

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import typeof
from stretto._engine.core.program import check


def test_eval_shape():
    def never(w, x, scale=1.0):
        return {"y": w @ x * scale, "n": [x.astype(snp.int8)]}

    spec = st.ShapeDtypeStruct((3, 1000000), snp.float32)
    out = st.eval_shape(never, spec, st.ShapeDtypeStruct((1000000,), snp.float32), scale=2.0)
    assert out == {
        "y": st.ShapeDtypeStruct((3,), np.float32),
        "n": [st.ShapeDtypeStruct((1000000,), np.int8)],
    }
    with pytest.raises(TypeError, match="x must be an array"):
        st.eval_shape(lambda x: x, "a")


def test_what_an_array_is_like():
    like = st.ShapeDtypeStruct.like
    for x in (snp.ones((2, 3)), np.ones((2, 3), "f4")):
        assert like(x) == st.ShapeDtypeStruct((2, 3), "float32")
        assert like(x).sharding is None and not like(x).weak_type
    number = like(2.0)
    assert (number.shape, number.dtype, number.weak_type) == ((), np.float32, True)
    assert like(number) == number
    with pytest.raises(TypeError, match=r"ShapeDtypeStruct.like: x must be an array"):
        like(types.SimpleNamespace(shape=(2,)))


def test_make_graph():
    graph = st.make_graph(lambda p, x: p["w"] @ x)({"w": snp.ones((2, 3))}, snp.ones(3))
    assert [str(v.type) for v in graph.inputs] == ["float32[2,3]", "float32[3]"]
    check(graph)
    with pytest.raises(TypeError, match="y must be an array"):
        st.make_graph(lambda x, y: x)(1.0, "a")


def test_the_program_is_shown_as_it_was_recorded():
    def f(x):
        for _ in range(1000):
            x * 3.0
        return snp.sin(x)

    plain, left = st.make_graph(f)(1.0), st.make_graph(f, simplified=True)(1.0)
    assert len(plain.equations) == 1001 and str(plain).count("mul a 3.0") == 1000
    assert [e.primitive.name for e in left.equations] == ["sin"]
    assert st.jit(f).lower(1.0).as_text().count("stablehlo.") == 1


def test_simplified_does_equal_work_once():
    graph = st.make_graph(lambda x: snp.sin(x) + snp.sin(x), simplified=True)(1.0)
    assert [e.primitive.name for e in graph.equations] == ["sin", "add"]
    assert len(st.make_graph(lambda x: snp.sin(x) + snp.sin(x))(1.0).equations) == 3


def test_make_graph_with_static_arguments():
    def f(x, n, *, scale):
        return x**n * scale

    graph = st.make_graph(f, static_argnums=1)
    assert [t.dtype.name for t in graph(1.5, 3, scale=2.0).in_types] == ["float32"] * 2
    assert len(st.make_graph(f, static_argnums=(-1, 0))(1.5, 3, scale=2.0).inputs) == 1
    with pytest.raises(ValueError, match="make_graph: static_argnums names argument 4"):
        st.make_graph(f, static_argnums=4)
    with pytest.raises(ValueError, match="the static argument 1 must be hashable"):
        graph(1.5, [3], scale=2.0)
    with pytest.raises(TypeError, match="make_graph: expected a function, got int"):
        st.make_graph(3)


def test_make_graph_with_shapes():
    graph, shapes = st.make_graph(lambda x: {"y": x.sum(), "z": (x,)}, return_shape=True)(
        st.ShapeDtypeStruct((2, 3), "int8")
    )
    check(graph)
    assert shapes == {
        "y": st.ShapeDtypeStruct((), "int32"),
        "z": (st.ShapeDtypeStruct((2, 3), "int8"),),
    }


def test_make_graph_with_named_axes():
    def f(x):
        return st.lax.psum(x, "i") + st.lax.axis_size("j")

    graph = st.make_graph(f, axis_env=[("i", 3), ("j", 4)])(1.0)
    assert [e.primitive.name for e in graph.equations] == ["psum", "add"]
    assert "size=3" in str(graph) and "4.0" in str(graph)
    with pytest.raises(NameError):
        st.make_graph(f, axis_env=[("i", 3)])(1.0)


def test_shape_dtype_struct():
    spec = st.ShapeDtypeStruct([2, 3], "bfloat16")
    assert (spec.shape, spec.ndim, spec.size, spec.dtype) == ((2, 3), 2, 6, snp.bfloat16)
    assert spec == st.ShapeDtypeStruct((2, 3), snp.bfloat16) != st.ShapeDtypeStruct((2,), "f4")
    assert len({spec, st.ShapeDtypeStruct((2, 3), snp.bfloat16)}) == 1
    with pytest.raises(TypeError, match="positional"):
        st.ShapeDtypeStruct((2, 3), "float32", None)


def test_shape_dtype_struct_says_what_an_array_would():
    spec = st.ShapeDtypeStruct((2, 3), "float32")
    assert len(spec) == 2 and spec.update(shape=(4,)) == st.ShapeDtypeStruct((4,), "float32")
    weak = spec.update(shape=(), weak_type=True)
    assert weak.weak_type and weak != spec.update(shape=())
    assert repr(weak) == "ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)"
    with pytest.raises(TypeError, match="rank 0"):
        len(weak)
    with pytest.raises(ValueError, match="ShapeDtypeStruct: dtype must be given"):
        st.ShapeDtypeStruct((2,), None)
    with pytest.raises(TypeError):
        st.ShapeDtypeStruct(2, "float32")
    keys = st.random.key(0).dtype
    assert st.ShapeDtypeStruct((2,), keys).dtype is keys
    assert repr(st.ShapeDtypeStruct((), keys)) == "ShapeDtypeStruct(shape=(), dtype=key<fry>)"


def test_weak_types_stay_weak():
    out = st.eval_shape(lambda x, y: (x * 2, y * 2), 1.0, snp.ones(2))
    assert [s.weak_type for s in out] == [True, False]
    again = st.eval_shape(lambda x: x + snp.ones((), "float16"), out[0])
    assert again.dtype == np.float16
    assert st.jit(lambda x: x + 1).eval_shape(1.0).weak_type
    assert st.jit(lambda x: x + 1).lower(1.0).out_info.weak_type


def test_anything_with_a_shape_and_a_dtype_describes_an_argument():
    class Spec:
        shape, dtype = [2, 3], "float32"

    assert st.eval_shape(lambda x: x.T, Spec()) == st.ShapeDtypeStruct((3, 2), "float32")
    assert st.jit(lambda x: x.T).lower(Spec()).compile()(snp.ones((2, 3))).shape == (3, 2)
    assert st.linear_transpose(lambda x: 2 * x.sum(), Spec())(1.0)[0].shape == (2, 3)


def test_functions_of_every_kind_are_evaluated_in_shape():
    class Model:
        scale = 2.0

        def __call__(self, x):
            return {"y": x * self.scale}

        def method(self, x):
            return (x,)

    model, x = Model(), snp.ones(3)
    spec = st.ShapeDtypeStruct((3,), "float32")
    assert st.eval_shape(model, x) == {"y": spec}
    assert st.eval_shape(model.method, x) == (spec,)
    assert st.eval_shape(functools.partial(lambda x, y: x + y, y=x), x) == spec
    assert st.eval_shape(abs, x) == st.eval_shape(st.jit(abs), x) == spec


def test_typeof():
    x = snp.ones((2, 3))
    assert typeof(x) is x.type and str(typeof(x)) == "float32[2,3]"
    assert typeof(1.0).weak_type and typeof(np.int8(3)).dtype == np.int8
    assert st.jit(lambda x: typeof(x).ndim)(x) == 2
    with pytest.raises(TypeError, match="typeof: x must be an array or a number"):
        typeof("a")
