"""Groups of devices, and what one device alone makes of collectives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.lowering.collectives import Collectives
from stretto.sharding import Mesh
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
    assert "sdy" not in g.lower(x).as_text()
