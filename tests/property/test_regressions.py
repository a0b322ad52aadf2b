"""What random programs found, as small as it gets."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax


def scaled_by(weights):
    """x ↦ weights x, whose backward rule holds the weights as a constant."""
    f = st.custom_vjp(lambda x: weights * x)
    f.defvjp(lambda x: (weights * x, None), lambda _, ct: (weights * ct,))
    return f


LOOPS = {
    "scan": lambda f, x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "fori_loop": lambda f, x: lax.fori_loop(0, 2, lambda _, c: f(c), x),
    "map": lambda f, x: lax.map(f, snp.stack([x, x]))[0] * x,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_backward_rule_with_an_array_of_its_own_in_a_loop(loop):
    f, x = scaled_by(snp.array([1.0, 2.0, 3.0])), snp.ones(3)
    gradient = st.grad(lambda x: LOOPS[loop](f, x).sum())
    want = np.array([1.0, 4.0, 9.0]) if loop != "map" else np.array([2.0, 4.0, 6.0])
    np.testing.assert_allclose(gradient(x), want)
    np.testing.assert_allclose(st.jit(gradient)(x), want)
    np.testing.assert_allclose(st.vmap(gradient)(x[None]), want[None])
