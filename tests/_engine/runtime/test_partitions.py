"""Shardings as the runtime has them, there and back."""

import itertools

import numpy as np
import pytest

import stretto as st
from stretto import NamedSharding, P
from stretto._engine.runtime import partitions

pytestmark = pytest.mark.devices


def _specs():
    names = ["x", "y", "z"]
    for first, second in itertools.product(range(4), range(4)):
        if first + second <= 3:
            yield from (
                P(tuple(order[:first]), tuple(order[first : first + second]))
                for order in itertools.permutations(names)
            )


@pytest.mark.parametrize("spec", sorted(set(map(str, _specs()))))
def test_the_compilers_choice_is_read_as_a_specification(spec):
    mesh = st.make_mesh((2, 2, 2), ("x", "y", "z"))
    sharding = NamedSharding(mesh, eval(spec, {"PartitionSpec": P}))
    out = st.jit(lambda x: x + 1)(st.device_put(np.zeros((8, 8), np.float32), sharding))
    assert out.sharding.is_equivalent_to(sharding, 2)
    for part in out.addressable_shards:
        assert part.data.shape == sharding.shard_shape((8, 8))


def test_part_of_an_axis():
    """The runtime may split an axis of the mesh between two axes of a result."""
    mesh = st.make_mesh((8,), ("x",))
    factored = partitions._factored(mesh)
    assert dict(factored.shape) == {"x.0": 2, "x.1": 2, "x.2": 2}
    assert list(factored.devices.flat) == list(mesh.devices.flat)
    x = st.device_put(np.arange(64, dtype=np.float32), NamedSharding(mesh, P("x")))
    out = st.jit(lambda x: x.reshape(2, 32))(x)
    np.testing.assert_array_equal(out, np.arange(64).reshape(2, 32))
    np.testing.assert_array_equal(out + 1, np.arange(64).reshape(2, 32) + 1)
