"""Arrays that are put on several devices, and what becomes of those that they were."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices


def test_arrays_that_move_are_deleted_where_they_are_donated():
    mesh = st.make_mesh((4,), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    kept, given = snp.ones(8), snp.ones(8)
    assert st.device_put(kept, sharding).sharding == sharding and not kept.is_deleted()
    moved = st.device_put({"a": given}, sharding, donate=True)["a"]
    assert given.is_deleted() and moved.tolist() == [1] * 8
    assert st.device_put(moved, sharding, donate=True) is moved and not moved.is_deleted()


def test_what_cannot_be_split_is_named():
    sharding = NamedSharding(st.make_mesh((4,), ("x",)), P("x"))
    with pytest.raises(
        ValueError, match=r"device_put: x\['a'\]\[1\], float32\[6\], cannot be split"
    ):
        st.device_put({"a": [snp.ones(8), snp.ones(6)]}, sharding)
    with pytest.raises(
        ValueError, match=r"zeros: the result, float32\[6\], cannot be split evenly"
    ):
        snp.zeros(6, device=sharding)
