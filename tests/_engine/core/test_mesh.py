"""Meshes and specifications: what they are made of, and what is refused."""

import copy
import pickle

import numpy as np
import pytest

import stretto as st
from stretto import P
from stretto.sharding import Mesh, PartitionSpec

ONE = np.array(st.devices()[:1])


class Place:
    """Stands for a device."""

    platform = "cpu"

    def __init__(self, id):
        self.id, self.process_index = id, 0

    def __str__(self):
        return f"cpu:{self.id}"


def places(*shape):
    made = np.empty(int(np.prod(shape)), object)
    made[:] = [Place(k) for k in range(made.size)]
    return made.reshape(shape)


def test_specifications():
    spec = P("data", None, ("x", "y"))
    assert spec == PartitionSpec("data", None, ("x", "y")) == ("data", None, ("x", "y"))
    assert (len(spec), list(spec), spec[2]) == (3, ["data", None, ("x", "y")], ("x", "y"))
    assert spec.names == ("data", "x", "y")
    assert (spec.index(None), spec.index(("x", "y")), spec.count("x")) == (1, 2, 0)
    with pytest.raises(ValueError):
        spec.index("x")
    assert P(("x",), (), None) == P("x", None, None)
    assert P("x") + P("y") == P("x", "y") == ("x",) + P("y")
    assert hash(P("x")) == hash(P("x")) and P("x") != P("y")
    assert repr(P("x", None)) == "PartitionSpec('x', None)"
    again = pickle.loads(pickle.dumps(P("x", P.UNCONSTRAINED)))
    assert again == P("x", P.UNCONSTRAINED) and again[1] is P.UNCONSTRAINED
    assert st.tree.leaves({"a": spec}) == [spec]  # a leaf, not a container


def test_entries_are_found_as_in_tuples():
    spec = P("x", None, ("y", "z"), None)
    assert (spec.index(None), spec.index(None, 2), spec.index(("y", "z"))) == (1, 3, 2)
    assert (spec.count(None), spec.count("y")) == (2, 0)
    with pytest.raises(ValueError):
        spec.index("w")


def test_specifications_refuse():
    with pytest.raises(ValueError, match="'x' occurs twice"):
        P("x", ("y", "x"))
    with pytest.raises(TypeError, match="must be the name of an axis"):
        P({})
    with pytest.raises(TypeError, match="must be a tuple of names"):
        P((None, "x"))


def test_meshes():
    mesh = Mesh(places(2, 3), ("x", "y"))
    assert dict(mesh.shape) == {"x": 2, "y": 3}
    assert (mesh.size, mesh.axis_names, mesh.axis_sizes) == (6, ("x", "y"), (2, 3))
    assert mesh.device_ids.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert mesh.size_of(()) == 1 and mesh.size_of(("y", "x")) == 6
    assert not mesh.is_multi_process and not mesh.empty
    assert repr(mesh) == "Mesh('x': 2, 'y': 3)"
    one = Mesh(ONE, "x")
    for other in (copy.deepcopy(one), pickle.loads(pickle.dumps(one)), Mesh(ONE[0:1], ["x"])):
        assert other == one and hash(other) == hash(one)
    assert one != Mesh(ONE, "y") and one != Mesh(ONE[None], ("x", "y"))
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = None


@pytest.mark.parametrize(
    ("devices", "names", "problem"),
    [
        (places(2, 3), ("x",), "a name for each of the 2 axes"),
        (places(2, 3), ("x", "x"), "must differ"),
        (places(2), (None,), "not be None"),
        (np.array([ONE[0], ONE[0]]), ("x",), "each at most once"),
        (np.empty(0, object), ("x",), "at least one"),
    ],
)
def test_meshes_refuse(devices, names, problem):
    with pytest.raises(ValueError, match=problem):
        Mesh(devices, names)


def test_what_is_no_device():
    with pytest.raises(TypeError, match="devices must be devices"):
        Mesh([1, 2], ("x",))
