"""Constraints: what asks for nothing passes, what is no sharding is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto._engine.ops.sharding_constraint import ShardingConstraint, with_sharding_constraint
from stretto.laws import b1, bf16, c64, f32, f64, i32, law

MESH = st.make_mesh((1,), ("x",))
split = lambda x: with_sharding_constraint(x, st.sharding.NamedSharding(MESH, P("x")))

LAWS = [
    law(ShardingConstraint, lambda x: snp.sin(split(x * x)), f32(3)),
    *[law(ShardingConstraint, split, kind(2)) for kind in (f64, c64, bf16, i32, b1)],
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_no_constraint_is_none():
    tree = {"x": np.ones(2), "y": (np.zeros(3, np.int32),)}
    out = with_sharding_constraint(tree, None)
    np.testing.assert_array_equal(out["x"], tree["x"])
    assert with_sharding_constraint(tree, {"x": None, "y": (None,)})["y"][0].shape == (3,)


def test_what_is_no_sharding_is_refused():
    with pytest.raises(TypeError, match=r"shardings must be a sharding, such as .* got 'batch'"):
        with_sharding_constraint(np.ones(2), "batch")
    with pytest.raises(TypeError, match=r"shardings must be over a mesh"):
        with_sharding_constraint(np.ones(2), snp.ones(2).sharding)
    with pytest.raises(TypeError, match=r"x\['a'\] must be an array"):
        with_sharding_constraint({"a": "text"}, None)
    with pytest.raises(ValueError, match=r"no mesh is in use"):
        with_sharding_constraint(np.ones(2), P("x"))
    with (
        st.sharding.set_mesh(MESH),
        pytest.raises(
            ValueError,
            match=r"^with_sharding_constraint: shardings .* names the axis 'y'.* has 'x'",
        ),
    ):
        with_sharding_constraint(np.ones(2), P("y"))
    with pytest.raises(ValueError, match=r"has 1 axes, shape .* entries for 2"):
        with_sharding_constraint(np.ones(2), st.sharding.NamedSharding(MESH, P("x", None)))


def test_rules():
    def constrained(x):
        return with_sharding_constraint(x, st.sharding.NamedSharding(MESH, P("x")))

    x = snp.arange(3.0)
    for f in (lambda x: (constrained(x) ** 2).sum(), st.jit(lambda x: (constrained(x) ** 2).sum())):
        np.testing.assert_array_equal(st.grad(f)(x), 2 * x)
    mapped = st.make_graph(st.vmap(constrained, in_axes=1))(snp.ones((3, 2)))
    (equation,) = [e for e in mapped.equations if e.primitive.name == "sharding_constraint"]
    assert tuple(equation.primitive.sharding.spec) == (P.UNCONSTRAINED, "x")
    out = st.jit(st.vmap(constrained, in_axes=1, out_axes=1))(snp.ones((3, 2)))
    np.testing.assert_array_equal(out, np.ones((3, 2)))


def test_a_mesh_without_axes_says_nothing():
    anywhere = st.sharding.NamedSharding(st.sharding.Mesh(np.array(st.devices()[0]), ()), st.P())
    x = snp.ones(2)
    assert st.lax.with_sharding_constraint(x, anywhere) is x


def test_an_operation_refuses_what_cannot_be_split():
    constraint = ShardingConstraint(st.sharding.NamedSharding(MESH, P("x")))
    whole = snp.ones(2).type
    assert constraint.infer(whole) is whole
    with pytest.raises(ValueError, match=r"with_sharding_constraint: x, float32\[\], has 0 axes"):
        constraint.infer(whole.with_shape(()))


def test_a_constraint_keeps_the_axes():
    x = snp.ones((2, 3)).type
    constraint = ShardingConstraint(st.sharding.NamedSharding(MESH, P("x")))
    assert [*constraint.kept_axes(0, x, x)] == [0, 1]


@pytest.mark.parametrize(
    ("axis", "spec"),
    [
        (0, (P.UNCONSTRAINED, "x")),
        (1, ("x", P.UNCONSTRAINED)),
        (2, ("x", None, P.UNCONSTRAINED)),
        (3, ("x", None, None, P.UNCONSTRAINED)),
    ],
)
def test_examples_may_lie_along_an_axis_that_nothing_is_said_of(axis, spec):
    constraint = ShardingConstraint(st.sharding.NamedSharding(MESH, P("x")))
    traced = lambda x: constraint.vmap(2, (x,), (axis,))[0]
    (equation,) = st.make_graph(traced)(np.ones((2, 2, 2, 2), np.float32)).equations
    assert tuple(equation.primitive.sharding.spec) == spec
