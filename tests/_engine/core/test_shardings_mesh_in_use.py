"""The mesh in use: for all threads, and for a block of one."""

import threading

import pytest

import stretto as st
from stretto import P

ONE, OTHER = st.make_mesh((1,), ("x",)), st.make_mesh((1, 1), ("x", "y"))


def test_blocks_nest():
    assert st.sharding.get_mesh() is None
    with st.sharding.set_mesh(ONE) as mesh:
        assert st.sharding.get_mesh() is ONE is mesh
        with OTHER as inner:
            assert st.sharding.get_mesh() is OTHER is inner
            elsewhere = []
            thread = threading.Thread(target=lambda: elsewhere.append(st.sharding.get_mesh()))
            thread.start()
            thread.join()
            assert elsewhere == [None]
        assert st.sharding.get_mesh() is ONE
    assert st.sharding.get_mesh() is None


def test_blocks_end_with_errors():
    with pytest.raises(KeyError), ONE:
        raise KeyError
    with pytest.raises(KeyError), st.sharding.set_mesh(ONE):
        raise KeyError
    assert st.sharding.get_mesh() is None


def test_for_all_threads():
    st.sharding.set_mesh(ONE)
    try:
        assert st.sharding.get_mesh() is ONE == st.config.mesh
        found = []
        thread = threading.Thread(target=lambda: found.append(st.sharding.get_mesh()))
        thread.start()
        thread.join()
        assert found == [ONE]
    finally:
        st.sharding.set_mesh(None)
    assert st.sharding.get_mesh() is None


def test_programs_are_traced_for_it():
    f = st.jit(lambda x: st.lax.with_sharding_constraint(x, P("x")))
    for mesh in (ONE, OTHER):
        with st.sharding.set_mesh(mesh):
            assert f(st.numpy.ones(2)).sharding.mesh == mesh


def test_what_is_no_mesh():
    with pytest.raises(st.errors.ConfigError, match=r"config.mesh must be None or a Mesh; got 'x'"):
        st.sharding.set_mesh("x")
