"""The way there and the way back as two functions."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


@pytest.mark.parametrize("jitted", [True, False])
def test_both_ways(jitted):
    traces = []

    def f(x, w, *, scale=1.0):
        traces.append(1)
        return scale * snp.sin(x) @ w

    forward, backward = st.fwd_and_bwd(f, argnums=(0, 1), jitted=jitted)
    w = snp.array([[1.0, 2.0], [3.0, 4.0]])
    for x in (snp.ones(2), snp.zeros(2)):
        y, residuals = forward(x, w, scale=2.0)
        np.testing.assert_allclose(y, 2 * np.sin(x) @ w, rtol=1e-6)
        dx, dw = backward(residuals, snp.ones(2))
        np.testing.assert_allclose(dx, 2 * np.cos(x) * np.array([3.0, 7.0]), rtol=1e-6)
        np.testing.assert_allclose(dw, 2 * np.sin(x)[:, None] * np.ones(2), rtol=1e-6)
    assert len(traces) == (1 if jitted else 2)


def test_one_argument_and_aux():
    forward, backward = st.fwd_and_bwd(lambda x, y: (x * y, {"x": x}), -1, has_aux=True)
    out, residuals, aux = forward(2.0, 3.0)
    assert (float(out), float(aux["x"]), float(backward(residuals, 1.0))) == (6.0, 2.0, 2.0)


def test_mistakes():
    with pytest.raises(TypeError, match="fwd_and_bwd: expected a function, got int"):
        st.fwd_and_bwd(3, 0)
    with pytest.raises(TypeError, match="fwd_and_bwd: argnums names argument 2"):
        st.fwd_and_bwd(lambda x: x, 2)[0](1.0)
