from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_filled():
    for jit in (lambda f: f, st.jit):
        assert jit(lambda: snp.zeros((2, 3)))().tolist() == [[0] * 3] * 2
        assert jit(lambda: snp.ones(2, int))().dtype == snp.int32
        assert jit(lambda: snp.empty(())).__call__().shape == ()
        assert jit(lambda: snp.full((2,), -0.0))().tolist() == [0.0, 0.0]
        assert np.signbit(jit(lambda: snp.full((2,), -0.0))()).all()
        assert jit(lambda: snp.full((2, 2), snp.array([1, 2])))().tolist() == [[1, 2], [1, 2]]
        assert jit(lambda: snp.full(2, True))().dtype == bool
        assert jit(lambda: snp.zeros((0, 3)))().shape == (0, 3)
    assert snp.full(2, 3).weak_type
    assert not snp.full(2, 3, snp.int8).weak_type
    with pytest.raises(OverflowError):
        snp.full(2, 300, snp.int8)
    with pytest.raises(ValueError, match="negative"):
        snp.zeros(-1)
    with pytest.raises(TypeError):
        snp.zeros(2.5)


def test_filled_like():
    x = snp.array([[1, 2]], snp.int8)
    assert snp.zeros_like(x).dtype == snp.int8
    assert snp.ones_like(x, dtype=float).dtype == snp.float32
    assert snp.empty_like(x, shape=3).shape == (3,)
    assert snp.full_like(x, 7).tolist() == [[7, 7]]
    assert snp.full_like(x, snp.array(2.7)).tolist() == [[2, 2]]
    assert snp.zeros_like(1.0).weak_type
    with pytest.raises(OverflowError):
        snp.full_like(x, 300)


def test_a_traced_size_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match="static_argnums"):
        st.jit(snp.zeros)(3)
    with pytest.raises(TypeError, match="argument n"):
        st.jit(lambda n: snp.ones((2, n)))(3)


def test_zero_in_a_trace_is_a_literal():
    graph = str(st.make_graph(lambda x: x + snp.ones((1000, 1000)))(snp.zeros((1000, 1000))))
    assert len(graph) < 1000


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "full_like"])
def test_like_a_type_alone(name):
    like = st.ShapeDtypeStruct((2, 3), snp.bfloat16)
    more = (7,) if name == "full_like" else ()
    out = getattr(snp, name)(like, *more)
    assert (out.shape, out.dtype) == ((2, 3), snp.bfloat16)
    assert set(np.asarray(out, float).flat) == {7.0 if more else float(name == "ones_like")}
    other = getattr(snp, name)(like, *more, dtype=int, shape=(4,))
    assert (other.shape, other.dtype) == ((4,), snp.int32)
    tree = {"w": like, "b": st.ShapeDtypeStruct((), np.int32)}
    assert st.tree.map(lambda x: getattr(snp, name)(x, *more), tree)["b"].shape == ()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.full(2, snp.ones(3)),
            ValueError,
            r"full: fill_value, float32\[3\], does not broadcast to shape \(2,\)",
        ),
        (
            lambda: snp.full_like(snp.ones(2), snp.ones(3)),
            ValueError,
            r"full_like: fill_value, float32\[3\], does not broadcast",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()


def test_like_an_array_that_was_put_somewhere():
    where = st.sharding.NamedSharding(st.make_mesh((1,), ("x",)), st.P("x"))
    x = st.device_put(snp.ones(4), where)
    for made in (snp.zeros_like(x), snp.ones_like(x), snp.empty_like(x), snp.full_like(x, x + 1)):
        assert made.sharding == where
        assert type(made.sharding) is st.sharding.NamedSharding
    assert type(snp.zeros_like(x, shape=(2,)).sharding) is not st.sharding.NamedSharding
    assert type(snp.zeros_like(x, device=st.devices()[0]).sharding) is not st.sharding.NamedSharding
    assert st.jit(snp.zeros_like)(x).tolist() == [0, 0, 0, 0]
