"""Results that are asked to lie somewhere on a mesh."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto._engine.ops.layout import laid_out
from stretto.sharding import NamedSharding

MESH = st.make_mesh((1,), ("x",))


def test_results_lie_where_they_are_asked_to():
    x = snp.arange(3)
    assert laid_out(x, None, "f") is x
    assert laid_out(x, NamedSharding(MESH, P("x")), "f").sharding.spec == P("x")
    with st.sharding.set_mesh(MESH):
        out = st.jit(lambda x: laid_out(x * 2, P("x"), "f"))(x)
    assert out.sharding.mesh == MESH and out.tolist() == [0, 2, 4]


def test_what_is_no_place_is_refused():
    x = snp.arange(3)
    with pytest.raises(TypeError, match=r"f: out_sharding must be a sharding, such as .* got 'x'"):
        laid_out(x, "x", "f")
    with pytest.raises(TypeError, match=r"f: where must be over a mesh, .* there is device_put"):
        laid_out(x, x.sharding, "f", "where")
    with pytest.raises(ValueError, match=r"f: the result, int32\[3\], has 1 axes"):
        laid_out(x, NamedSharding(MESH, P("x", None)), "f")
    with pytest.raises(ValueError, match=r"f: out_sharding is .* and no mesh is in use"):
        laid_out(np.ones(2), P("x"), "f")
