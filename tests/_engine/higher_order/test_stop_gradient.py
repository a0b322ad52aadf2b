"""``stop_gradient``: the laws, every order, trees."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.stop_gradient import StopGradient, stop_gradient
from stretto.laws import bf16, c64, f32, f64, i32, law

LAWS = [
    law(StopGradient, stop_gradient, f32(2, 3), derivative=False),
    law(StopGradient, stop_gradient, f64(2), derivative=False),
    law(StopGradient, stop_gradient, i32(2)),
    law(StopGradient, stop_gradient, c64(2), derivative=False),
    law(StopGradient, stop_gradient, bf16(2), derivative=False),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


X = np.array([0.0, 1.0, 100.0], np.float32)


def test_the_derivative_is_zero():
    f = lambda x: x * stop_gradient(x)
    for g in (st.grad(f), st.jit(st.grad(f)), st.grad(st.jit(f)), st.jacfwd(f)):
        assert float(g(3.0)) == 3.0
    np.testing.assert_array_equal(st.vmap(st.grad(f))(X), X)
    assert float(st.grad(st.grad(f))(3.0)) == 0.0
    assert float(st.jvp(stop_gradient, (3.0,), (1.0,))[1]) == 0.0


def test_trees():
    tree = {"a": X, "n": [1, None, True]}
    held = stop_gradient(tree)
    assert st.tree.structure(held) == st.tree.structure(tree)
    np.testing.assert_array_equal(held["a"], X)
    assert held["n"][0].dtype == snp.int32
    with pytest.raises(TypeError, match="stop_gradient: x must be an array or a number"):
        stop_gradient({"a": "word"})


def test_it_goes_by_rows():
    x = array_type((3, 2), np.dtype(np.float32))
    assert StopGradient().by_rows([x], [x])
