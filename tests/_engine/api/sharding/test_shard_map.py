"""``shard_map`` and ``smap`` of functions of trees."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.api.sharding.shard_map import along, smap

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


TWO = st.make_mesh((1, 1), ("x", "y"))


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"axis_names": "x"}, TypeError, "axis_names must be a set of names, got 'x'"),
        ({"axis_names": {"z"}}, ValueError, "axis_names has 'z', and Mesh"),
        ({"axis_names": {"y"}}, ValueError, "in_specs .* names 'x', which is not among the axis_n"),
        (
            {"in_specs": P(), "axis_names": {"y"}},
            ValueError,
            "out_specs .* names 'x', which is not",
        ),
        ({"in_specs": P("z")}, ValueError, "in_specs .* names the axis 'z'"),
        ({"in_specs": 3}, TypeError, "in_specs must be a PartitionSpec"),
        ({"out_specs": P("x", None, "y")}, ValueError, "entries for 3 axes, and the result is flo"),
        ({"out_specs": P("y")}, ValueError, "may differ between the parts along the axis 'x'"),
        ({"mesh": None}, ValueError, "mesh must be given, or one must be in use"),
    ],
)
def test_what_is_refused(how, error, message):
    options = {"mesh": TWO, "in_specs": P("x"), "out_specs": P("x"), **how}
    with pytest.raises(error, match=f"shard_map: .*{message}"):
        st.shard_map(lambda x: x, **options)(snp.ones((2, 3)))


@pytest.mark.parametrize(
    "how",
    [
        {"out_specs": P("x", "y")},
        {"out_specs": P("x"), "axis_names": {"x"}},
        {"in_specs": None, "out_specs": None},
        {"out_specs": P(), "check_vma": False},
    ],
)
def test_what_is_taken(how):
    x = snp.arange(6.0).reshape(2, 3)
    f = st.shard_map(lambda x: x * 2, **{"mesh": TWO, "in_specs": P("x"), **how})
    np.testing.assert_array_equal(f(x), 2 * x)


def test_parts_of_ragged_arrays_of_equal_lengths_are_known_to_fit():
    first, second = (st.ragged([snp.ones(2), snp.ones(3)]) for _ in range(2))
    f = lambda a, b: st.vmap(lambda x, y: (x + y).sum())(a, b).sum()
    mapped = st.shard_map(f, mesh=ONE, in_specs=(None, None), out_specs=P())
    assert mapped(first, second) == 10


@pytest.mark.parametrize(
    ("axis", "ndim", "spec"),
    [(None, 2, P()), (0, 0, P("i")), (-1, 1, P("i")), (-1, 2, P(None, "i")), (1, 3, P(None, "i"))],
)
def test_axes_that_are_split_are_counted_from_the_end_too(axis, ndim, spec):
    assert along(axis, ndim, "i") == spec
