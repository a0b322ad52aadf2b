"""Which part of an array each device has, beside NumPy's reshaping."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import stretto as st
from stretto import P
from stretto._engine.core.shardings import can_split, check_split
from stretto.sharding import Mesh, NamedSharding, SingleDeviceSharding
from tests._engine.core.test_mesh import places

CPU = st.devices()[0]


@given(some.data())
def test_parts(data):
    """Device by device: reshape each axis into its mesh axes, and take the device's place."""
    sizes = data.draw(some.lists(some.integers(1, 3), min_size=1, max_size=3))
    names = [f"m{k}" for k in range(len(sizes))]
    mesh = Mesh(places(*sizes), names)
    free = data.draw(some.permutations(names))
    spec, shape = [], []
    for _ in range(data.draw(some.integers(0, 3))):
        count = data.draw(some.integers(0, len(free)))
        taken, free = free[:count], free[count:]
        spec.append(tuple(taken) or None)
        parts = int(np.prod([mesh.shape[name] for name in taken]))
        shape.append(parts * data.draw(some.integers(0, 2)))
    sharding = NamedSharding(mesh, P(*spec))
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = sharding.devices_indices_map(shape)
    assert list(found) == list(mesh.devices.flat)
    part = sharding.shard_shape(shape)
    for place in np.ndindex(*sizes):
        at = dict(zip(names, place, strict=True))
        expected = whole
        for axis, entry in enumerate(spec):
            inner = [mesh.shape[name] for name in entry or ()]
            split = expected.reshape(
                *expected.shape[:axis], *inner, part[axis], *expected.shape[axis + 1 :]
            )
            for name in entry or ():
                split = split.take(at[name], axis)
            expected = split
        got = whole[found[mesh.devices[place]]]
        assert got.shape == part
        np.testing.assert_array_equal(got, expected)
    repeated = all(mesh.size_of(entry or ()) == 1 for entry in spec)
    assert sharding.is_fully_replicated == repeated


def test_equal_and_equivalent():
    mesh = Mesh(places(2, 2), ("x", "y"))
    one = NamedSharding(mesh, P("x"))
    assert one == NamedSharding(mesh, P("x", None)) and hash(one) == hash(
        NamedSharding(mesh, P("x", None))
    )
    same, other = one, NamedSharding(mesh, P("y"))
    assert one == same and one != other
    flat = Mesh(mesh.devices.reshape(4), ("z",))
    both = NamedSharding(mesh, P(("x", "y")))
    assert both != NamedSharding(flat, P("z")) and both.is_equivalent_to(
        NamedSharding(flat, P("z")), 1
    )
    assert not both.is_equivalent_to(NamedSharding(mesh, P(("y", "x"))), 1)
    assert not both.is_equivalent_to("x", 1)
    assert both.is_equivalent_to(both, 1)


def test_one_device():
    sharding = SingleDeviceSharding(CPU)
    assert sharding.shard_shape((2, 3)) == (2, 3)
    assert sharding.devices_indices_map((2, 3)) == {CPU: (slice(0, 2), slice(0, 3))}
    assert sharding.addressable_devices_indices_map((2,)) == {CPU: (slice(0, 2),)}
    assert (sharding.is_fully_replicated, sharding.is_fully_addressable) == (True, True)
    assert (sharding.num_devices, sharding.device_set, sharding.memory_kind) == (1, {CPU}, None)
    assert sharding.addressable_devices == {CPU}
    assert pickle.loads(pickle.dumps(sharding)) == sharding
    assert repr(sharding) == "SingleDeviceSharding(cpu:0)"
    named = NamedSharding(st.make_mesh((1,), ("x",)), P("x"))
    assert pickle.loads(pickle.dumps(named)) == named
    assert named.is_equivalent_to(sharding, 1) and named != sharding


def test_refusals():
    mesh = Mesh(places(2, 3), ("x", "y"))
    with pytest.raises(TypeError, match=r"mesh must be a Mesh"):
        NamedSharding("x", P())
    with pytest.raises(TypeError, match=r"spec must be a PartitionSpec"):
        NamedSharding(mesh, ("x",))
    with pytest.raises(ValueError, match=r"names the axis 'z', and .* has 'x', 'y'"):
        NamedSharding(mesh, P("z"))
    with pytest.raises(ValueError, match=r"axis 0 of shape .5,. has size 5.*6 parts; pad it to 6"):
        NamedSharding(mesh, P(("x", "y"))).shard_shape((5,))
    with pytest.raises(ValueError, match=r"has 0 axes, .* entries for 1"):
        NamedSharding(mesh, P("x")).shard_shape(())
    with pytest.raises(ValueError, match=r"axis 1 of shape .4, 7. has size 7.*2 parts; pad .* 8,"):
        NamedSharding(mesh, P(None, "x")).shard_shape((4, 7))
    with pytest.raises(ValueError, match=r"axis 1 of shape .4, 7, 5. has size 7.*over 'y'"):
        NamedSharding(mesh, P("x", "y")).shard_shape((4, 7, 5))


@pytest.mark.parametrize(
    ("spec", "shape", "fits"),
    [
        (P("x", "y"), (4, 6), True),
        (P("x", "y"), (4, 6, 5), True),
        (P("x", "y"), (4,), False),
        (P("x", "y"), (4, 4), False),
        (P("x", "y"), (3, 6), False),
        (P(("y", "x")), (12,), True),
        (P(("y", "x")), (9,), False),
        (P(), (), True),
        (P(None, None), (1,), False),
        (P("x", None), (0, 5), True),
    ],
    ids=str,
)
def test_what_can_be_split(spec, shape, fits):
    sharding = NamedSharding(Mesh(places(2, 3), ("x", "y")), spec)
    assert can_split(sharding, shape) is fits
    if fits:
        check_split(sharding, shape, "x")
        assert len(sharding.shard_shape(shape)) == len(shape)
    else:
        with pytest.raises(ValueError, match=r"^x (has \d axes|cannot be split evenly)"):
            check_split(sharding, shape, "x")
