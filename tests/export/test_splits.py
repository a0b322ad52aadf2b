"""Splits of exported functions: described, put on devices, and left out of programs."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.graph import make_graph
from stretto._engine.core.errors import ExportError
from stretto._engine.ops.sharding_constraint import ShardingConstraint
from stretto.export.container import Aval, Container, Node, from_bytes, to_bytes
from stretto.export.splits import Split, devices_of, sharding_of, split_of, without_constraints
from stretto.files.names import Damaged
from stretto.sharding import NamedSharding

BOTH = Split((("x", 2), ("y", 1)), (("x", "y"), ()))


class Device:
    """Stands for a device of which a mesh asks nothing."""

    is_local = True
    platform = "cpu"

    def __init__(self, number):
        self.id = number


DEVICES = [Device(k) for k in range(4)]


def test_there_and_back():
    sharding = sharding_of(BOTH, DEVICES[:2])
    assert sharding.mesh.axis_names == ("x", "y") and sharding.mesh.device_list == (*DEVICES[:2],)
    assert split_of(sharding) == BOTH and BOTH.devices == 2
    assert split_of(None) is None and split_of(snp.ones(2).sharding) is None
    free = NamedSharding(sharding.mesh, st.P(st.P.UNCONSTRAINED, "x"))
    assert split_of(free) is None


def test_names_are_texts():
    mesh = st.sharding.Mesh(np.array(DEVICES[:1]), (0,))
    with pytest.raises(ExportError, match="an axis of the mesh has the name 0"):
        split_of(NamedSharding(mesh, st.P(0)))


def test_numbers_of_devices():
    assert devices_of([None, BOTH], {2}) == 2
    assert devices_of([None], set()) == 1
    with pytest.raises(ExportError, match=r"over meshes of \[2, 4\] devices"):
        devices_of([BOTH], {4})


def test_constraints_are_left_out_also_of_branches():
    where = NamedSharding(st.make_mesh((1,), ("x",)), st.P("x"))
    put = lambda x: lax.with_sharding_constraint(x, where)

    def f(x):
        x = lax.cond(x.sum() > 0, lambda x: put(x) * 2, put, put(x))
        return put(x + 1), x

    found = set()
    program = make_graph(f)(np.ones(3, "f"))
    plain = without_constraints(program, found)
    assert "sharding_constraint" in str(program) and "sharding_constraint" not in str(plain)
    assert found == {1} and plain.out_types == program.out_types
    assert not any(isinstance(e.primitive, ShardingConstraint) for e in plain.equations)


def container(**fields):
    leaves = Node("tuple", (Node("leaf"), Node("leaf")))
    avals = (Aval(("4", "b"), "float32"), Aval((), "int32"))
    trees = Node("tuple", (leaves, Node("dict"))), avals, leaves, avals
    return Container("f", *trees, ("cpu",), b"", (0, 1), **fields)


@pytest.mark.parametrize(
    ("ins", "outs"),
    [
        ((BOTH, None), ()),
        ((), (BOTH, Split((("x", 2), ("y", 1)), ()))),
        ((Split((("z", 2),), ((), ("z",))), None), (BOTH, None)),
    ],
)
def test_in_files(ins, outs):
    written = container(devices=2, in_splits=ins, out_splits=outs)
    read = from_bytes(to_bytes(written))
    assert read == written


@pytest.mark.parametrize(
    "split",
    [
        Split((("x", 2),), (("y",),)),
        Split((("x", 2), ("x", 2)), ()),
        Split((("x", 2),), (("x",), ("x",))),
        Split((("x", 0),), ()),
        Split((("x", 2),), ((), (), ("x",))),
    ],
)
def test_damaged_files(split):
    with pytest.raises(Damaged, match=r"a sharding is over axes|is split along 3"):
        from_bytes(to_bytes(container(devices=2, in_splits=(split, None))))


def test_devices_must_be_those_of_the_file():
    file = st.export.stablehlo(snp.sin, snp.ones((4, 4)))
    own = file._container._replace(devices=3, in_splits=(BOTH,))
    with pytest.raises(Damaged, match="has arrays over 2 devices, and is for 3"):
        st.export.load(to_bytes(own))
