"""Functions of the parts along one axis of a mesh of several devices."""

import numpy as np
import pytest

import stretto as st
from stretto import P, lax
from stretto._engine.api.sharding.shard_map import smap
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices

A = np.arange(32.0, dtype=np.float32).reshape(4, 8)


@pytest.fixture(autouse=True)
def mesh():
    with st.sharding.set_mesh(st.make_mesh((4,), ("i",))) as mesh:
        yield mesh


def test_the_first_axis_is_split_unless_it_is_said():
    shapes = []

    @smap(out_axes=0, axis_name="i")
    def f(x, y):
        shapes.extend([x.shape, y.shape])
        return x * lax.axis_index("i") + y[:, :1]

    np.testing.assert_array_equal(f(A, A), A * np.arange(4)[:, None] + A[:, :1])
    assert shapes == [(1, 8), (1, 8)]


@pytest.mark.parametrize(("axis", "parts"), [(0, (1, 8)), (1, (4, 2)), (None, (4, 8))])
def test_results_are_put_together_along_an_axis(axis, parts):
    shapes = []

    def f(tree):
        shapes.append(tree["a"].shape)
        return {"b": tree["a"] + 1, "sum": lax.psum(tree["a"].sum(), "i")}

    out = smap(f, in_axes=({"a": axis},), out_axes={"b": axis, "sum": None}, axis_name="i")(
        {"a": A}
    )
    np.testing.assert_array_equal(out["b"], A + 1)
    assert float(out["sum"]) == A.sum() * (1 if axis is not None else 4)
    assert shapes == [parts]
    spec = P() if axis is None else P(*[None] * axis, "i")
    assert out["b"].sharding.is_equivalent_to(NamedSharding(out["b"].sharding.mesh, spec), 2)
