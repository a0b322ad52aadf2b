"""Meshes of the devices that there are."""

import pytest

import stretto as st


def test_a_mesh_of_one():
    mesh = st.make_mesh((1, 1), ("x", "y"))
    assert mesh.devices.tolist() == [st.devices()]
    assert st.make_mesh([1], "x", devices=st.devices()) == st.make_mesh((1,), ("x",))


def test_refusals():
    with pytest.raises(ValueError, match=r"needs 2 devices, and there are 1; set config.num_cpu"):
        st.make_mesh((2,), ("x",))
    with pytest.raises(ValueError, match=r"needs 2 devices, and there are 1\n"):
        st.make_mesh((2,), ("x",), devices=st.devices())
    with pytest.raises(ValueError, match=r"a size of at least 1 for each of the names"):
        st.make_mesh((1, 1), ("x",))
    with pytest.raises(ValueError, match=r"a size of at least 1"):
        st.make_mesh((0,), ("x",))
    with pytest.raises(TypeError, match=r"axis_shapes"):
        st.make_mesh((1.5,), ("x",))
