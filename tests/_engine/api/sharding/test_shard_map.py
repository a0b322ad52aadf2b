"""``shard_map`` and ``smap`` of functions of trees."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.api.sharding.shard_map import smap

ONE = st.make_mesh((1,), ("x",))


def test_trees_and_decorators():
    @st.shard_map(mesh=ONE, in_specs=({"a": P("x")}, None), out_specs=(P("x"), {"n": P()}))
    def f(tree, scale):
        return tree["a"] * scale, {"n": lax.psum(tree["a"].sum(), "x")}

    out, rest = f({"a": np.ones(3, np.float32)}, 2.0)
    np.testing.assert_array_equal(out, [2, 2, 2])
    assert float(rest["n"]) == 3
    assert f.__name__ == "shard_map_f"


def test_the_mesh_in_use():
    f = st.shard_map(lambda x: x + lax.axis_size("x"), in_specs=P("x"), out_specs=P("x"))
    with st.sharding.set_mesh(ONE):
        np.testing.assert_array_equal(f(snp.zeros(2)), [1, 1])
        np.testing.assert_array_equal(st.jit(f)(snp.zeros(2)), [1, 1])


@pytest.mark.devices
def test_one_axis():
    mesh = st.make_mesh((4, 2), ("x", "y"))
    a = np.arange(32.0, dtype=np.float32).reshape(8, 4)
    with st.sharding.set_mesh(mesh):
        f = smap(lambda a, b: a * b.sum(), in_axes=(0, None), out_axes=0, axis_name="x")
        np.testing.assert_allclose(f(a, a), a * a.sum())
        g = smap(lambda a: lax.all_gather(a, "x").sum(0), in_axes=1, out_axes=None, axis_name="x")
        np.testing.assert_allclose(g(a), a.sum(1, keepdims=True))


def test_specifications_say_where_every_axis_is():
    for how in (
        {"in_specs": P(P.UNCONSTRAINED)},
        {"in_specs": P(), "out_specs": P(P.UNCONSTRAINED)},
    ):
        f = st.shard_map(lambda x: x, mesh=ONE, **{"out_specs": P(), **how})
        with pytest.raises(ValueError, match=r"(in|out)_specs .* must say where every axis is"):
            f(np.ones(2))
