"""Maps over devices beside what they mean, nested ``vmap``: values, and all derivatives."""

import re
from unittest import mock

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.core.primitive import NamedAxis
from stretto._engine.core.rewriting import restrict
from stretto._engine.higher_order.shard_map import ShardMap, differing, varying
from stretto._engine.ops.collective.primitives import PSumSame
from stretto.laws import c64, f32, f64, i32, law

ONE = st.make_mesh((1,), ("x",))


def on_one(f):
    return st.shard_map(f, mesh=ONE, in_specs=P("x"), out_specs=P("x"))


LAWS = [
    law(ShardMap, on_one(lambda x: snp.sin(x) * lax.psum(x, "x")), f32(4, 2)),
    law(ShardMap, on_one(lambda x: lax.all_gather(x, "x", tiled=True) * x), f64(3)),
    law(ShardMap, on_one(lambda x: x * x - lax.axis_index("x")), c64(3)),
    law(ShardMap, on_one(lambda x: lax.ppermute(x, "x", [(0, 0)]) + 1), i32(3)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


B = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
X, Y, XY = P("x"), P(None, "y"), P("x", "y")

PROGRAMS = {
    "elementwise": (lambda a: snp.sin(a) * 2, XY, XY),
    "sum": (lambda a: lax.psum(a, "x"), XY, Y),
    "sum of both": (lambda a: lax.psum(a, ("x", "y")), XY, P()),
    "mean": (lambda a: a - lax.pmean(a.mean(), ("y", "x")), XY, XY),
    "maximum": (lambda a: lax.pmax(a, "x"), XY, Y),
    "minimum": (lambda a: a - lax.pmin(a.min(), "y"), XY, XY),
    "gather": (lambda a: lax.all_gather(a, "x"), XY, P(None, None, "y")),
    "gather along": (lambda a: lax.all_gather(a, ("x", "y"), axis=1, tiled=True), XY, P()),
    "scatter": (lambda a: lax.psum_scatter(a, "x", tiled=True), XY, XY),
    "exchange": (lambda a: lax.all_to_all(a, "y", 0, 1, tiled=True), XY, XY),
    "permute": (lambda a: lax.ppermute(a, "x", [(0, 1), (1, 2), (3, 0)]), XY, XY),
    "shuffle": (lambda a: lax.pshuffle(a, "x", [3, 1, 0, 2]), XY, XY),
    "index": (lambda a: a * lax.axis_index(("x", "y")), XY, XY),
    "repeated argument": (lambda a: a * (1.0 + lax.axis_index("x")), P(None, "y"), XY),
    "repeated result": (lambda a: a[:1] * 0 + lax.axis_size("x"), P(), P("x")),
    "groups": (lambda a: lax.psum(a, "x", axis_index_groups=[[0, 3], [1, 2]]), XY, XY),
    "scan": (
        lambda a: lax.scan(lambda c, r: (c + lax.psum(r, "x"), c * r), a[0] * 0, a)[1],
        XY,
        XY,
    ),
    "loop": (lambda a: lax.fori_loop(0, 3, lambda i, c: c + lax.pmean(snp.sin(c), "x"), a), XY, XY),
    "cond": (lambda a: lax.cond(lax.psum(a.sum(), ("x", "y")) > 0, snp.sin, snp.cos, a), XY, XY),
    "own cond": (lambda a: lax.cond(a.sum() > 0, snp.sin, snp.cos, a), XY, XY),
    "checkpoint": (st.checkpoint(lambda a: lax.psum(snp.sin(a) ** 2, "y")), XY, X),
    "jitted inside": (st.jit(lambda a: lax.psum(snp.sin(a), "x") * 2), XY, Y),
    "vmap inside": (st.vmap(lambda r: r / lax.psum(r.sum(), "y")), XY, XY),
    "grad inside": (st.grad(lambda a: (a**3).sum()), XY, XY),
    "random": (lambda a: a + st.random.normal(st.random.key(0), a.shape), XY, XY),
    "captured": (lambda a: a @ snp.array(W[:, :2]), X, P("x")),
}


def mapped(name):
    fun, ins, outs = PROGRAMS[name]
    mesh = st.make_mesh((4, 2), ("x", "y"))
    if name == "captured":
        ins, outs = P(("x", "y")), P(("x", "y"))
        fun = lambda a: a @ snp.array(np.tile(W, (2, 1)))
    return st.shard_map(fun, mesh=mesh, in_specs=ins, out_specs=outs)


def beside_its_meaning(f, *args):
    got = f(*args)
    with mock.patch.object(ShardMap, "compiled", lambda self, types: False):  # interpreted
        expected = f(*args)
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    return got


@pytest.mark.devices
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives(name):
    f = mapped(name)
    x, dx = snp.array(B), snp.array(B[::-1].copy())
    out = beside_its_meaning(f, x)
    np.testing.assert_allclose(st.jit(f)(x), out, rtol=1e-6, atol=1e-6)

    def loss(x):
        out = f(x)
        return (out * snp.cos(snp.arange(out.size, dtype=out.dtype).reshape(out.shape))).sum()

    gradient = beside_its_meaning(st.grad(loss), x)
    np.testing.assert_allclose(st.jit(st.grad(loss))(x), gradient, rtol=2e-5, atol=2e-5)
    _, slope = st.jvp(loss, (x,), (dx,))
    np.testing.assert_allclose(slope, (gradient * dx).sum(), rtol=2e-3, atol=2e-3)
    second = lambda x: (st.grad(loss)(x) * dx).sum()
    if name not in ("scan", "loop", "random"):
        beside_its_meaning(st.grad(second), x)


@pytest.mark.devices
@pytest.mark.parametrize(
    "name", ["sum", "gather", "scatter", "exchange", "permute", "cond", "scan"]
)
def test_under_vmap(name):
    f = mapped(name)
    stacked = snp.array(np.stack([B, B + 1, B * 2]))
    got = beside_its_meaning(st.vmap(f), stacked)
    np.testing.assert_allclose(got[1], f(stacked[1]), rtol=2e-5, atol=2e-5)
    beside_its_meaning(st.grad(lambda x: (st.vmap(f)(x) ** 2).sum()), stacked)


def loss_over(mesh):
    def loss(w, x, y):
        predicted = snp.tanh(x @ w["first"]) @ w["second"]
        return lax.pmean(((predicted - y) ** 2).mean(), "data")

    return st.shard_map(loss, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())


@pytest.mark.devices
def test_a_data_parallel_step():
    mesh = st.make_mesh((8,), ("data",))
    w = {"first": snp.array(W), "second": snp.array(W[:3, :1])}
    x, y = snp.array(B.reshape(32, 4)), snp.array(B.reshape(32, 4)[:, :1])

    def alone(w):
        return ((snp.tanh(x @ w["first"]) @ w["second"] - y) ** 2).mean()

    step = st.jit(st.value_and_grad(loss_over(mesh)))
    value, gradient = step(w, x, y)
    expected, slopes = st.value_and_grad(alone)(w)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for name in w:
        np.testing.assert_allclose(gradient[name], slopes[name], rtol=1e-5, atol=1e-6)
        assert gradient[name].sharding.is_fully_replicated
    text = step.lower(w, x, y).compile().as_text()
    assert not re.search(r"all-gather|all-to-all|collective-permute", text)


@pytest.mark.devices
def test_members_on_devices_need_no_collective():
    mesh = st.make_mesh((8,), ("members",))
    w = snp.array(np.random.default_rng(2).standard_normal((16, 4, 4)).astype(np.float32))

    def step(w, x):
        one = lambda w: w - 0.1 * st.grad(lambda w: (snp.tanh(x @ w) ** 2).sum())(w)
        return st.vmap(one)(w)

    whole = st.jit(
        st.shard_map(step, mesh=mesh, in_specs=(P("members"), P()), out_specs=P("members"))
    )
    x = snp.array(B[:, :4])
    np.testing.assert_allclose(whole(w, x), st.jit(step)(w, x), rtol=1e-5, atol=1e-6)
    text = whole.lower(w, x).compile().as_text()
    assert not re.search(r"all-|collective-permute|reduce-scatter", text)


@pytest.mark.devices
def test_large_constants():
    mesh = st.make_mesh((8,), ("x",))
    table = np.arange(4000.0, dtype=np.float32)
    f = st.shard_map(lambda a: a + snp.array(table)[10:14], mesh=mesh, in_specs=X, out_specs=X)
    np.testing.assert_array_equal(st.jit(f)(snp.zeros((8, 4))), np.tile(table[10:14], (8, 1)))


@pytest.mark.devices
def test_some_axes_alone():
    mesh = st.make_mesh((4, 2), ("x", "y"))
    f = st.shard_map(
        lambda a: a / lax.psum(a.sum(), "x"),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    a = st.device_put(np.abs(B), st.sharding.NamedSharding(mesh, P("x", "y")))
    np.testing.assert_allclose(st.jit(f)(a), np.abs(B) / np.abs(B).sum(), rtol=1e-5)


@pytest.mark.devices
def test_what_is_refused():
    mesh = st.make_mesh((4, 2), ("x", "y"))

    def over(f, ins=XY, outs=XY, **options):
        return st.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)(snp.array(B))

    with pytest.raises(ValueError, match=r"may differ .* along the axis 'y'.*lax.pmean\(x, 'y'\)"):
        over(lambda a: a, outs=X)
    np.testing.assert_array_equal(
        over(lambda a: a * 0, outs=P(), check_vma=False), np.zeros((4, 4))
    )
    with pytest.raises(ValueError, match=r"a cond, whose branch differs .* 'x'"):
        over(lambda a: lax.cond(a.sum() > 0, lambda a: lax.psum(a, "x"), lambda a: a, a))
    with pytest.raises(ValueError, match=r"a while_loop, whose condition differs .* 'x'"):
        over(lambda a: lax.while_loop(lambda a: a.sum() > 0, lambda a: a - lax.pmax(a, "x"), a))
    three = st.make_mesh((3,), ("x",))
    with pytest.raises(ValueError, match=r"a, float32\[16,8\], cannot be split evenly"):
        st.shard_map(lambda a: a, mesh=three, in_specs=X, out_specs=X)(snp.array(B))
    with pytest.raises(ValueError, match=r"in_specs .* names the axis 'z'"):
        over(lambda a: a, ins=P("z"))
    with pytest.raises(ValueError, match=r"which is not among the axis_names 'x'"):
        over(lambda a: a, axis_names={"x"})
    with pytest.raises(ValueError, match=r"out_specs .* has entries for 2 axes"):
        over(lambda a: a.sum())
    with pytest.raises(TypeError, match="in_specs must be a PartitionSpec"):
        over(lambda a: a, ins="x")
    with pytest.raises(st.errors.UnboundAxisError):
        over(lambda a: lax.psum(a, "z"))


@pytest.mark.parametrize("is_split", [False, True])
def test_axes_of_sizes_that_vary_stay_whole(is_split):
    spec = P("x", None) if is_split else P(None, "x")
    twice = st.shard_map(lambda x: x * 2, mesh=ONE, in_specs=spec, out_specs=spec)
    f = st.jit(twice, dynamic_axes=({0: "n"},))
    if is_split:
        with pytest.raises(st.errors.MissingRuleError, match="splits no axis of a size that var"):
            f(np.ones((3, 4), np.float32))
        return
    np.testing.assert_array_equal(f(np.ones((3, 4), np.float32)), np.full((3, 4), 2))


def test_a_mesh_is_needed():
    with pytest.raises(ValueError, match="mesh must be given, or one must be in use"):
        st.shard_map(lambda x: x, in_specs=P(), out_specs=P())(1.0)
    with pytest.raises(TypeError, match="axis_names must be a set"):
        st.shard_map(lambda x: x, mesh=ONE, in_specs=P(), out_specs=P(), axis_names="x")(1.0)


def test_a_sum_over_an_axis_does_not_vary_along_it():
    def f(x):
        return PSumSame("i", 2)(x), PSumSame("j", 3)(x), snp.sin(x), lax.axis_index("i")

    program = st.make_graph(f, axis_env=[("i", 2), ("j", 3)])(1.0)
    i, j = frozenset("i"), frozenset("j")
    assert varying(program, [i | j]) == [j, i, i | j, i]
    assert varying(program, [frozenset()]) == [frozenset(), frozenset(), frozenset(), i]


def test_operands_of_which_the_parts_are_not_those_of_the_program():
    (equation,) = st.make_graph(on_one(lambda x: x + 1))(snp.ones(4)).equations
    infer, whole = equation.primitive.infer, equation.inputs[0].type
    assert infer(whole) == (whole,)
    with pytest.raises(
        TypeError, match=r"the parts of operand 0 are float32\[3\], expected float32"
    ):
        infer(whole.with_shape((3,)))
    with pytest.raises(ValueError, match=r"shard_map: operand 0 has 0 axes, shape \(\)"):
        infer(whole.with_shape(()))


# Along which of the axes i and j the parts of results may differ, for those of arguments.

V, S = snp.ones(2), snp.float32(0)
positive = lambda x: x.sum() > 0
below = lambda x: x.sum() < 3
added = lambda s: (s[0] + s[1], s[1] + 1)
DIFFERING = {
    "element by element": (lambda x, y: (x + y, snp.sin(x), 3.0), [V, V], "i j", ["ij", "i", ""]),
    "reductions": (
        lambda x, y: (lax.psum(x + y, "i"), lax.pmax(x, "j"), lax.all_gather(y, "j")),
        [V, V],
        "i j",
        ["j", "i", ""],
    ),
    "exchanges": (
        lambda x: (
            lax.axis_index("i"),
            lax.ppermute(x, "i", [(0, 1)]),
            lax.psum_scatter(x, "i", tiled=True),
            lax.all_to_all(x, "i", 0, 0, tiled=True),
        ),
        [V],
        "-",
        ["i"] * 4,
    ),
    "a call": (st.jit(lambda x, y: (x, lax.psum(y, "j"))), [V, V], "i j", ["i", ""]),
    "a carry that begins to": (
        lambda c, x: lax.scan(lambda c, e: (c + e, e), c, x),
        [S, V],
        "- i",
        ["i", "i"],
    ),
    "a carry that may stay": (
        lambda c, x: lax.scan(lambda c, e: (lax.psum(c, "i"), c), c, x),
        [S, V],
        "i -",
        ["i", "i"],
    ),
    "carries by turns": (
        lambda c, d, x: lax.scan(lambda c, e: ((c[1], lax.psum(c[1], "j") + e), c[0]), (c, d), x),
        [S, S, V],
        "- j i",
        ["ij"] * 3,
    ),
    "a constant of a loop": (
        lambda w, c, x: lax.scan(lambda c, e: (c * w, None), c, x)[0],
        [S, S, V],
        "j - i",
        ["j"],
    ),
    "branches": (
        lambda p, x, y: lax.cond(positive(p), lambda x, y: (x, y), lambda x, y: (y, y), x, y),
        [V, V, V],
        "- i j",
        ["ij", "j"],
    ),
    "a condition, and what all branches hand on": (
        lambda p, x, y: lax.cond(positive(p), lambda x, y: (x, y), lambda x, y: (x, y * 2), x, y),
        [V, V, V],
        "j i -",
        ["i", "j"],
    ),
    "a collective in a branch that all take": (
        lambda p, x: lax.cond(positive(p), lambda x: lax.psum(x, "i"), lambda x: x, x),
        [V, V],
        "j -",
        ["j"],
    ),
    "a loop": (
        lambda x, y: lax.while_loop(
            lambda s: below(s[1]), lambda s: (s[0] + s[1], s[1] + 1), (x, y)
        ),
        [V, V],
        "i -",
        ["i", ""],
    ),
    "a loop whose body makes it so": (
        lambda x, y: lax.while_loop(
            lambda s: below(s[1]), lambda s: (s[0] + s[1], s[1] + 1), (x, y)
        ),
        [V, V],
        "- i",
        ["i", "i"],
    ),
    "a loop whose condition does": (
        lambda x, y: lax.while_loop(lambda s: below(s[0]), lambda s: (s[0] + 1, s[1] + 1), (x, y)),
        [V, V],
        "i -",
        ["i", "i"],
    ),
    "a loop with a condition for all": (
        lambda x, y: lax.while_loop(
            lambda s: lax.psum(s[1].sum(), "i") < 3, lambda s: (s[0], s[1] + 1), (x, y)
        ),
        [V, V],
        "- i",
        ["", "i"],
    ),
}


@pytest.mark.parametrize("name", DIFFERING)
def test_along_which_axes_results_may_differ(name):
    f, args, ins, outs = DIFFERING[name]
    program = st.make_graph(f, axis_env=[("i", 2), ("j", 3)])(*args)
    found = differing(program, [frozenset(axes.strip("-")) for axes in ins.split()])
    assert ["".join(sorted(axes)) for axes in found] == outs


@pytest.mark.parametrize(
    ("f", "what"),
    [
        (
            lambda p, x: lax.cond(positive(p), lambda x: lax.psum(x, "i"), lambda x: x, x),
            "a cond, whose branch",
        ),
        (
            lambda p, x: lax.while_loop(
                lambda s: below(s[0]), lambda s: (s[0] + 1, lax.psum(s[1], "i")), (p, x)
            ),
            "a while_loop, whose condition",
        ),
    ],
)
def test_all_parts_meet_in_a_collective(f, what):
    program = st.make_graph(f, axis_env=[("i", 2), ("j", 3)])(V, V)
    with pytest.raises(ValueError, match=f"{what} differs between the parts along the axis 'i'"):
        differing(program, [frozenset("i"), frozenset()])
    differing(program, [frozenset("j"), frozenset()])


def test_the_effects_of_a_map_are_those_of_other_axes():
    f = st.shard_map(
        lambda a: lax.psum(a, "b") + lax.psum(a, "x"), mesh=ONE, in_specs=P("x"), out_specs=P("x")
    )
    (equation,) = st.make_graph(f, axis_env=[("b", 3)])(snp.ones(2)).equations
    assert {type(e).__name__ for e in equation.primitive.effects} == {"NamedAxis", "OnMesh"}
    assert [e.name for e in equation.primitive.effects if type(e) is NamedAxis] == ["b"]
    many = st.vmap(f, axis_name="b")(snp.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(many, np.arange(6.0).reshape(3, 2) + [6, 9])


@pytest.mark.parametrize("needed", [(True, True), (True, False), (False, True)])
def test_only_what_a_needed_result_is_made_of_stays(needed):
    f = st.shard_map(
        lambda a, b: (a * 2, a + b), mesh=ONE, in_specs=(P("x"), P()), out_specs=(P("x"), P("x"))
    )
    program = st.make_graph(f)(snp.ones((2, 3)), snp.ones(3))
    new = restrict(program, needed)
    (equation,) = new.equations
    assert len(equation.inputs) == 1 + needed[1] and len(equation.outputs) == sum(needed)
    assert (equation is program.equations[0]) is all(needed)
    smaller = equation.primitive
    assert (len(smaller.ins), len(smaller.outs)) == (len(equation.inputs), len(equation.outputs))


def test_a_sum_over_all_parts_is_the_same_in_all():
    """A second sum is a multiple, for which nothing is sent, and nothing makes the result equal."""
    twice = st.shard_map(
        lambda x: lax.psum(snp.sin(lax.psum(x, "x")), "x"), mesh=ONE, in_specs=P("x"), out_specs=P()
    )
    (mapped,) = [e for e in st.make_graph(twice)(B).equations if type(e.primitive) is ShardMap]
    names = [e.primitive.name for e in mapped.primitive.program.equations]
    assert names == ["psum_same", "sin", "mul"]
