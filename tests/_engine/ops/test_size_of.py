"""Sizes that vary, as values."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.api.graph import make_graph
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.sizes import size_variable
from stretto._engine.ops.size_of import SizeOf
from stretto.laws import law

N = size_variable("n")
LAWS = [
    law(
        SizeOf,
        st.jit(lambda x: x * x.shape[0], dynamic_axes=({0: "n"},)),
        np.arange(1.0, 4.0, dtype=np.float32),
    )
]
X = st.ShapeDtypeStruct((N,), np.float32)


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_a_size_is_a_weak_integer():
    program = make_graph(lambda x: x * x.shape[0] + st.vmap(lambda y: y + x.shape[0])(x))(X)
    assert str(program).count("size_of [size=n]") >= 1
    assert program.out_types[0].dtype == np.float32
    assert st.vmap(lambda y: y, axis_size=2) is not None


def test_without_a_bucket_it_is_not_known():
    for rule in ("lower", "reference"):
        with pytest.raises(MissingRuleError, match="known only where the program is given a buck"):
            getattr(SizeOf(N), rule)(None)
