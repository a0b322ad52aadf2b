"""Values of several processes."""

import numpy as np
import pytest

import stretto as st
from stretto.compat.jax.presented.experimental import multihost_utils
from tests.processes import together


def test_one_process():
    mesh = st.make_mesh((1,), ("d",))
    tree = {"a": np.arange(4.0, dtype="f"), "b": np.ones((2, 3), "f")}
    whole = multihost_utils.host_local_array_to_global_array(tree, mesh, st.P("d"))
    assert whole["a"].sharding == st.sharding.NamedSharding(mesh, st.P("d"))
    back = multihost_utils.global_array_to_host_local_array(
        whole, mesh, {"a": st.P("d"), "b": st.P()}
    )
    assert back["a"].tolist() == [0, 1, 2, 3] and back["b"].shape == (2, 3)
    multihost_utils.assert_equal(tree)
    with pytest.raises(NotImplementedError, match="preemption"):
        multihost_utils.reached_preemption_sync_point(0)


SCRIPT = """
from stretto.compat.jax.presented.experimental import multihost_utils as m
st.distributed.initialize()
here = st.distributed.process_index()
mesh = st.make_mesh((2, 2), ("p", "d"))
own = np.arange(4.0).reshape(2, 2) + 10 * here
whole = m.host_local_array_to_global_array(own, mesh, P("p", "d"))
local = m.global_array_to_host_local_array(whole, mesh, P("p", "d"))
print(whole.shape, local.tolist() == own.tolist())
m.assert_equal({"a": np.ones(2)}, "fine")
try:
    m.assert_equal(np.float32(here), "here")
except AssertionError as error:
    print(error)
"""


def test_two_processes():
    first, second = together(SCRIPT, 2, 2)
    assert first == second
    assert first.splitlines() == ["(4, 2) True", "here processes have [0.0, 1.0]"]
