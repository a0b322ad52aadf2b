"""Meshes, partitions of an author's, and values of several processes."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import shardings
from stretto.compat.jax.shardings import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from tests.compat.jax.running import prints
from tests.processes import together


def test_one_process():
    mesh = st.make_mesh((1,), ("d",))
    tree = {"a": np.arange(4.0, dtype="f"), "b": np.ones((2, 3), "f")}
    whole = shardings.host_local_array_to_global_array(tree, mesh, st.P("d"))
    assert whole["a"].sharding == st.sharding.NamedSharding(mesh, st.P("d"))
    back = shardings.global_array_to_host_local_array(whole, mesh, {"a": st.P("d"), "b": st.P()})
    assert back["a"].tolist() == [0, 1, 2, 3] and back["b"].shape == (2, 3)
    shardings.assert_equal(tree)
    with pytest.raises(NotImplementedError, match="preemption"):
        shardings.reached_preemption_sync_point(0)


SCRIPT = """
from stretto.compat.jax import shardings as m
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


def test_it_computes_the_same_with_rules_or_without():
    @custom_partitioning
    def double(x):
        """Twice."""
        return 2 * x

    assert double.__name__ == "double" and double.__doc__ == "Twice."
    rule = SdyShardingRule(
        (ArrayMapping("i", CompoundFactor("j", "k")),), (ArrayMapping("i"),), j=2
    )
    assert rule.operand_mappings[0][1] == ("j", "k") and rule.factor_sizes == {"j": 2}
    partition = lambda mesh, args, result: (mesh, double, (), ())
    assert double.def_partition(partition, sharding_rule=rule) is partition
    x = snp.arange(3.0)
    for f in (double, st.jit(double), st.vmap(double)):
        np.testing.assert_array_equal(f(x), 2 * x)
    assert float(st.grad(lambda x: double(x).sum())(x)[0]) == 2


def test_meshes_in_use_are_abstract_meshes():
    code = """
        from jax.sharding import AbstractMesh, AxisType, get_abstract_mesh
        print(get_abstract_mesh().empty)
        mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
        with jax.set_mesh(mesh):
            now = get_abstract_mesh()
            print(isinstance(now, AbstractMesh), now == mesh, now.axis_types, now.are_all_axes_auto)
            print(jax.NamedSharding(now, jax.P("x")).spec, AbstractMesh((1,), ("x",)) == now)
    """
    assert prints(code) == [
        "True",
        "True True (<AxisType.Auto: 1>,) True",
        "PartitionSpec('x') True",
    ]
