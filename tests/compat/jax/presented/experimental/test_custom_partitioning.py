"""Functions with a partitioning of their author's are those functions."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.presented.experimental.custom_partitioning import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)


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
