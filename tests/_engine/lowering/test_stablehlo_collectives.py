"""Groups of devices, and what one device alone makes of collectives."""

import ast
import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.core.program import Var
from stretto._engine.core.shardings import Placement
from stretto._engine.core.types import array_type
from stretto._engine.lowering.stablehlo import Collectives, Meshes, rule_by_batch
from stretto._engine.lowering.text import Operand
from stretto.sharding import Mesh, NamedSharding
from tests._engine.core.test_mesh import places


def test_groups():
    writer = Collectives()
    writer._manual = Mesh(places(2, 3), ("x", "y"))
    assert writer._groups("x").tolist() == [[0, 3], [1, 4], [2, 5]]
    assert writer._groups("y").tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: lax.psum(x, "i"), [1.0, 2.0]),
        (lambda x: lax.all_gather(x, "i", tiled=True), [1.0, 2.0]),
        (lambda x: lax.psum_scatter(x, "i", tiled=True), [1.0, 2.0]),
        (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), [1.0, 2.0]),
        (lambda x: lax.ppermute(x, "i", []), [0.0, 0.0]),
        (lambda x: lax.ppermute(x, "i", [(0, 0)]), [1.0, 2.0]),
        (lambda x: x + lax.axis_index("i"), [1.0, 2.0]),
    ],
)
def test_one_device_needs_none(f, expected):
    mesh = st.make_mesh((1,), ("i",))
    g = st.jit(st.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    x = snp.array([1.0, 2.0])
    np.testing.assert_array_equal(g(x), expected)
    text = g.lower(x).as_text()
    assert "sdy" not in text and "num_partitions" not in text
    assert not re.search(r"stablehlo\.(all_|collective|reduce_scatter|partition)", text)


# Meshes and shardings as a text says them.


def test_shardings():
    mesh, other = Mesh(places(2, 3), ("x", 'a "y"')), Mesh(places(6), (7,))
    meshes = Meshes()
    assert meshes.sharding(NamedSharding(mesh, P("x")), 2) == '#sdy.sharding<@mesh_0, [{"x"}, {}]>'
    both = NamedSharding(mesh, P(P.UNCONSTRAINED, ('a "y"', "x")))
    assert meshes.sharding(both, 2) == r'#sdy.sharding<@mesh_0, [{?}, {"a \22y\22", "x"}]>'
    assert meshes.sharding(NamedSharding(other, P(7)), 1) == '#sdy.sharding<@mesh_1, [{"axis_0"}]>'
    assert meshes.sharding(NamedSharding(mesh, P()), 0) == "#sdy.sharding<@mesh_0, []>"
    assert meshes.written() == [
        r'sdy.mesh @mesh_0 = <["x"=2, "a \22y\22"=3]>',
        'sdy.mesh @mesh_1 = <["axis_0"=6]>',
    ]


def test_rules_of_what_is_done_by_batch():
    rule = rule_by_batch([(8, 5, 5), (8, 5, 2)], [(8, 5, 2), (8,)], 1)
    assert rule == (
        "#sdy.op_sharding_rule<([i, j, k], [i, l, m])->([i, n, o], [i]) "
        "{i=8, j=5, k=5, l=5, m=2, n=5, o=2} need_replication={j, k, l, m, n, o}, custom>"
    )
    many = rule_by_batch([(2,) * 20], [(2,) * 20], 20)
    assert many.startswith("#sdy.op_sharding_rule<([i, j,") and "z, z_1, z_2])->" in many
    assert "need_replication" not in many


# What is written for several devices.

INT32 = np.dtype(np.int32)


def f32(*shape):
    return array_type(shape, np.dtype(np.float32))


def writer_over(*shape, names=("x", "y")):
    """Return a writer in a manual region over a mesh of this shape."""
    mesh = Mesh(places(*shape), names)
    writer = Collectives(Placement(tuple(mesh.devices.ravel()), mesh, (), ()))
    writer._manual = mesh
    return writer


def attribute(line, name):
    """Return what a line says of an attribute: a number, or a list of them."""
    found = re.search(rf"{name} = (?:dense<|array<i64: )?(\[\[.*?\]\]|\d+)", line)
    return ast.literal_eval(found[1])


X = Operand("%x", f32(2, 3))
BETWEEN_ROWS, BETWEEN_COLUMNS = [[0, 3], [1, 4], [2, 5]], [[0, 1, 2], [3, 4, 5]]


def test_a_sum_over_devices():
    writer = writer_over(2, 3)
    for number, axes, groups in ((1, ("x",), BETWEEN_ROWS), (2, ("y",), BETWEEN_COLUMNS),
                                 (3, ("y", "x"), [[0, 3, 1, 4, 2, 5]])):  # fmt: skip
        (out,) = writer.all_reduce([X], axes)
        line = writer._lines[-1]
        assert out.type == X.type and line.startswith(out.name.removesuffix("#0"))
        assert attribute(line, "replica_groups") == groups
        assert f"tensor<{len(groups)}x{len(groups[0])}xi64>" in line
        assert attribute(line, "handle") == number and "use_global_device_ids" in line


def test_several_sums_over_devices_are_one_of_a_vector():
    writer = writer_over(2, 3)
    types = [f32(2, 3), f32(), f32(4)]
    outs = writer.all_reduce([Operand(f"%{c}", t) for c, t in zip("abc", types, strict=True)], "x")
    assert [x.type for x in outs] == types
    lines = "\n".join(writer._lines)
    assert lines.count("all_reduce") == 1 and "dimension = 0 : i64" in lines
    assert "(tensor<6xf32>, tensor<1xf32>, tensor<4xf32>) -> tensor<11xf32>" in lines
    parts = [line for line in writer._lines if "stablehlo.slice" in line]
    found = [(attribute(x, "start_indices"), attribute(x, "limit_indices")) for x in parts]
    assert found == [(0, 6), (6, 7), (7, 11)]
    assert all(attribute(x, "strides") == 1 for x in parts)


def test_parts_of_sums_and_of_arrays():
    writer = writer_over(2, 3)
    out = writer.reduce_scatter(X, "x")
    reshaped = writer._lines[-1]
    scattered = "\n".join(writer._lines[:-1])
    assert "scatter_dimension = 0 : i64" in scattered and "-> (tensor<1x3xf32>)" in scattered
    assert attribute(scattered, "replica_groups") == BETWEEN_ROWS
    assert "reshape" in reshaped and out.type == f32(3)
    out = writer.all_gather(X, "y", 3)
    assert out.type == f32(3, 2, 3) and "tensor<1x2x3xf32>" in writer._lines[-1]
    assert "all_gather_dim = 0 : i64" in writer._lines[-1]
    assert attribute(writer._lines[-1], "replica_groups") == BETWEEN_COLUMNS
    out = writer.all_to_all(X, "x", 2)
    line = writer._lines[-1]
    assert out.type == X.type and attribute(line, "split_count") == 2
    assert (attribute(line, "split_dimension"), attribute(line, "concat_dimension")) == (0, 0)


@pytest.mark.parametrize(
    ("axis", "pairs", "sent"),
    [
        ("x", [(0, 1)], [[0, 3], [1, 4], [2, 5]]),
        ("y", [(0, 1), (2, 0)], [[0, 1], [2, 0], [3, 4], [5, 3]]),
        ("y", [], None),
    ],
)
def test_what_is_sent(axis, pairs, sent):
    writer = writer_over(2, 3)
    writer.permute(X, axis, pairs)
    (line,) = writer._lines
    if sent is None:
        assert "source_target_pairs = dense<> : tensor<0x2xi64>" in line
    else:
        assert attribute(line, "source_target_pairs") == sent
        assert f"tensor<{len(sent)}x2xi64>" in line


@pytest.mark.parametrize(("axis", "inner", "size"), [("x", 12, 2), ("y", 4, 3), ("z", 1, 4)])
def test_the_index_of_a_device(axis, inner, size):
    writer = writer_over(2, 3, 4, names=("x", "y", "z"))
    out = writer.index_along(axis)
    assert out.type == array_type((), INT32)
    constants = [int(n) for n in re.findall(r"constant dense<(\d+)>", "\n".join(writer._lines))]
    assert constants == [inner, size]
    ops = re.findall(r'"stablehlo\.(\w+)"', "\n".join(writer._lines))
    assert ops == ["partition_id", "divide", "remainder", "convert"]


def test_where_an_array_is_and_what_is_done_by_batch():
    writer = writer_over(2, 3)
    mesh = writer._manual
    y = writer.constrain(X, NamedSharding(mesh, P("y")))
    assert y.type == X.type and 'sharding = #sdy.sharding<@mesh_0, [{"y"}, {}]>' in writer._lines[0]
    note = writer.sharding_note(NamedSharding(mesh, P(None, "x")), X.type)
    assert note == ['sdy.sharding = #sdy.sharding<@mesh_0, [{}, {"x"}]>']
    assert writer.sharding_note(None, X.type) == []
    rule = writer.by_batch([X], [f32(2)], 1)
    assert 'num_batch_dims = "1"' in rule and "([i, j])->([i])" in rule
    one = Mesh(places(1), ("x",))
    for alone in (Collectives(), Collectives(Placement(tuple(one.devices), one, (), ()))):
        assert alone.constrain(X, NamedSharding(mesh, P("y"))) is X and not alone._lines
        assert alone.by_batch([X], [f32(2)], 1) == ""
        assert alone.sharding_note(NamedSharding(mesh, P("x")), X.type) == []


@pytest.mark.parametrize("several", [True, False])
def test_a_manual_region_ends(several):
    mesh = Mesh(places(2, 3), ("x", "y"))
    placement = Placement(tuple(mesh.devices.ravel()), mesh, (), ())
    writer = Collectives(placement if several else None)
    writer._outputs = (Var(f32(4, 3)),)
    where = [NamedSharding(mesh, P("x"))]
    seen = []

    def body(*xs):
        seen.append((writer._manual, [x.type for x in xs]))
        return xs

    (out,) = writer.manual([Operand("%x", f32(4, 3))], where, where, ["x"], [f32(2, 3)], body)
    assert writer._manual is None and seen[0][0] is mesh
    if several:
        assert seen[0][1] == [f32(2, 3)] and out.type == f32(4, 3)
        text = "\n".join(writer._lines)
        assert 'manual_axes = #sdy<manual_axes{"x"}>' in text and "sdy.return" in text
        assert 'in_shardings = #sdy.sharding_per_value<[<@mesh_0, [{"x"}, {}]>]>' in text
    else:
        assert seen[0][1] == [f32(4, 3)] and not writer._lines
