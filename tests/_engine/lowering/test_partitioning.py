"""Meshes and shardings as a text says them."""

from stretto import NamedSharding, P
from stretto._engine.lowering.partitioning import Meshes, by_batch
from stretto.sharding import Mesh
from tests._engine.core.test_mesh import places


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
    rule = by_batch([(8, 5, 5), (8, 5, 2)], [(8, 5, 2), (8,)], 1)
    assert rule == (
        "#sdy.op_sharding_rule<([i, j, k], [i, l, m])->([i, n, o], [i]) "
        "{i=8, j=5, k=5, l=5, m=2, n=5, o=2} need_replication={j, k, l, m, n, o}, custom>"
    )
    many = by_batch([(2,) * 20], [(2,) * 20], 20)
    assert many.startswith("#sdy.op_sharding_rule<([i, j,") and "z, z_1, z_2])->" in many
    assert "need_replication" not in many
