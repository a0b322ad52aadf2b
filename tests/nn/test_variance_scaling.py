"""Initializers whose spread suits the shape: JAX's numbers, spread, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import initializers

KEY = st.random.PRNGKey(0)

# What jax.nn.initializers gives for PRNGKey(0) and (2, 3), the layout of counters being its own.
FIGURES = {
    "glorot_normal": [1.0468423, 1.2329134, -0.29671577, -0.05394943, 0.12079362, -0.65617436],
    "glorot_uniform": [0.9807893, 1.048516, -0.36743096, -0.06864396, 0.15311851, -0.7328462],
    "he_normal": [1.6552032, 1.9494075, -0.46914884, -0.08530156, 0.19099149, -1.0375029],
    "he_uniform": [1.550764, 1.6578493, -0.5809593, -0.10853563, 0.2421016, -1.1587315],
    "lecun_normal": [1.1704054, 1.3784391, -0.3317383, -0.0603173, 0.13505137, -0.7336252],
    "lecun_uniform": [1.0965558, 1.1722765, -0.410800308, -0.07674628, 0.17119169, -0.81934696],
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name):
    with st.config(threefry_partitionable=True):
        out = getattr(initializers, name)()(KEY, (2, 3))
    np.testing.assert_allclose(out.ravel(), FIGURES[name], rtol=2e-5)


def test_figures_of_fans_and_complex_numbers():
    with st.config(threefry_partitionable=True):
        geometric = initializers.variance_scaling(1.0, "fan_geo_avg", "normal")(KEY, (2, 3))
        field = initializers.variance_scaling(1, "fan_in", "uniform", in_axis=(0, 1), out_axis=2)
        cut = initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
        disk = initializers.variance_scaling(1.0, "fan_in", "uniform")
        outs = [x(KEY, (2, 2), snp.complex64)[0, 0] for x in (cut, disk)]
        first = field(KEY, (2, 2, 2))[0, 0]
    np.testing.assert_allclose(geometric[0], [1.036776, 1.294029, -0.27704218], rtol=2e-5)
    np.testing.assert_allclose(first, [0.775382, 0.82892466], rtol=2e-5)
    np.testing.assert_allclose(outs, [0.981468 + 0.04501065j, 0.9168131 + 0.04204555j], rtol=2e-5)


def test_spread_and_names():
    assert initializers.kaiming_normal is initializers.he_normal
    batch = initializers.lecun_normal(batch_axis=0)(KEY, (64, 50, 20))
    assert float(batch.var()) == pytest.approx(1 / 50, rel=0.05)
    compiled = st.jit(lambda key: initializers.he_uniform()(key, (2, 3)))(KEY)
    np.testing.assert_allclose(compiled, initializers.he_uniform()(KEY, (2, 3)), rtol=1e-6)


def test_messages():
    scaling = initializers.variance_scaling
    cases = [
        (lambda: scaling(1, "fan", "normal"), "mode must be one of fan_in, fan_out, fan_avg"),
        (lambda: scaling(1, "fan_in", "cauchy"), "distribution must be one of truncated_normal"),
        (
            lambda: scaling(1, "fan_in", "normal")(KEY, (3,)),
            "scaling: expected a shape of two axes",
        ),
        (lambda: scaling(1, "fan_in", "normal", 2)(KEY, (3, 2)), "initializers.variance_scaling: "),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words):
            call()
