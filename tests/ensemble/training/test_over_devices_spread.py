"""Arrays are split over the axis of data; and which optimizers may work on the parts."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax, optim
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.training.step import check_elementwise, gather_parts, part_of, spec_of
from stretto.optim.combining import per_member
from tests.meshes import mesh

OWN = {"w": snp.ones((2, 3, 4)), "b": snp.ones((2, 4))}


def checked(optimizer):
    tx = per_member(optimizer)
    check_elementwise(tx, OWN, tx.init(OWN), snp.ones(2))


@pytest.mark.parametrize(
    "name", ["sgd", "adam", "adamw", "nadam", "radam", "lion", "rmsprop", "adagrad", "yogi"]
)
def test_optimizers_that_go_element_by_element(name):
    checked(getattr(optim, name)(1e-3))


@pytest.mark.parametrize("name", ["lamb", "adafactor"])
def test_optimizers_that_do_not(name):
    with pytest.raises(ValueError, match=r"needs whole arrays: \w+"):
        checked(getattr(optim, name)(1e-3))


def test_chains_are_looked_into():
    checked(optim.chain(optim.clip(1.0), optim.adamw(1e-3)))
    with pytest.raises(ValueError, match="reduce_sum"):
        checked(optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-3)))


@pytest.mark.devices
@pytest.mark.parametrize("shape", [(2, 8, 3), (2, 3, 8), (2, 3), (2,), (2, 0, 4), (2, 4, 4)])
def test_parts_of_all_devices_are_the_whole(shape):
    over = OverMesh(mesh(members=2, data=4), "members", "data", "optimizer")
    whole = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    spec = spec_of(over, whole)

    def there_and_back(x):
        part = part_of(over, x, lax.axis_index("data"))
        return part, gather_parts(over, {"x": part}, {"x": shape[1:]})["x"]

    parts, again = st.shard_map(
        there_and_back, mesh=over.mesh, in_specs=P("members"), out_specs=(spec, P("members"))
    )(whole)
    np.testing.assert_array_equal(again, whole)
    np.testing.assert_array_equal(parts, whole)
    if whole.size:
        assert parts.sharding.is_equivalent_to(
            st.sharding.NamedSharding(over.mesh, spec), len(shape)
        )


@pytest.mark.devices
def test_arrays_of_several_dtypes_are_gathered_apart():
    over = OverMesh(mesh(members=2, data=4), "members", "data", "optimizer")
    arrays = {
        "w": np.arange(32, dtype=np.float32).reshape(2, 16),
        "h": np.arange(16).reshape(2, 8).astype(np.float16),
        "n": np.arange(6, dtype=np.int32).reshape(2, 3),
    }
    shapes = {n: x.shape[1:] for n, x in arrays.items()}

    def there_and_back(arrays):
        index = lax.axis_index("data")
        return gather_parts(over, {n: part_of(over, x, index) for n, x in arrays.items()}, shapes)

    run = st.shard_map(
        there_and_back, mesh=over.mesh, in_specs=P("members"), out_specs=P("members")
    )
    for name, x in run(arrays).items():
        np.testing.assert_array_equal(x, arrays[name])
        assert x.dtype == arrays[name].dtype
