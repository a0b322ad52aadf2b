"""Groups of devices, and what one device alone makes of collectives."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.lowering.stablehlo import Collectives, Meshes, rule_by_batch
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
    assert "sdy" not in text
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
