"""Initializers: JAX's numbers, dtypes, orthogonality, spread, messages that name the one called."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import initializers
from stretto.compat.jax.initializers import dtype_or, initializer, multiply

KEY = st.random.PRNGKey(0)


def test_dtypes():
    draw = initializer("x", snp.float16, lambda key, shape, dtype: snp.ones(shape, dtype))
    assert draw(KEY, [2, 3]).dtype == snp.float16 and draw(KEY, [2, 3]).shape == (2, 3)
    assert draw(KEY, (2,), snp.complex64).dtype == snp.complex64
    assert dtype_or(None) == np.float32 and dtype_or(None, snp.int8) == np.int8


def test_scaled_keeps_the_dtype():
    assert multiply(snp.ones(2, snp.bfloat16), np.float32(3)).dtype == snp.bfloat16


DRAWS = {
    "uniform": initializers.uniform(),
    "normal": initializers.normal(),
    "truncated_normal": initializers.truncated_normal(),
    "variance_scaling": initializers.he_normal(),
    "orthogonal": initializers.orthogonal(),
    "delta_orthogonal": initializers.delta_orthogonal(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_messages_about_arguments(name):
    draw = DRAWS[name]
    with pytest.raises(ValueError, match=f"initializers.{name}: dtype must be floating or complex"):
        draw(KEY, (1, 2, 2), int)
    with pytest.raises(TypeError, match=f"initializers.{name}: .*shape"):
        draw(KEY, (1.5, 2, 2))
    with pytest.raises(TypeError, match=f"initializers.{name}: out_sharding must be a sharding"):
        draw(KEY, (1, 2, 2), out_sharding="x")


# What jax.nn.initializers gives for PRNGKey(0) and (2, 3), the layout of counters being its own.
FIGURES = {
    "orthogonal": [0.96083665, -0.25675002, 0.10427104, 0.18604839, 0.3188112, -0.92937905],
    "normal": [0.01622642, 0.02025265, -0.00433594, -0.00078617, 0.00176091, -0.00972089],
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name):
    with st.config(threefry_partitionable=True):
        out = getattr(initializers, name)()(KEY, (2, 3))
    np.testing.assert_allclose(out.ravel(), FIGURES[name], rtol=2e-5)


def test_figures_of_kernels():
    with st.config(threefry_partitionable=True):
        delta = initializers.delta_orthogonal()(KEY, (2, 1, 2))
    np.testing.assert_allclose(delta[0, 0], [0.62526584, 0.78041178], rtol=2e-5)
    assert bool((delta[1] == 0).all())


def test_shapes_dtypes_and_defaults():
    assert initializers.constant(snp.array([1, 2]))(KEY, (2, 2)).tolist() == [[1.0, 2.0]] * 2
    assert initializers.ones(KEY, (2,), snp.int32).dtype == snp.int32
    assert initializers.uniform(dtype=snp.bfloat16)(KEY, (3,)).dtype == snp.bfloat16
    assert initializers.normal(dtype=snp.float16)(KEY, (3,), snp.float32).dtype == snp.float32
    cut = initializers.truncated_normal(1.0, lower=-1, upper=1)(KEY, (100,))
    assert float(abs(cut).max()) <= 1
    q = initializers.orthogonal(2.0, column_axis=0)(KEY, (3, 5, 2)).reshape(3, 10)
    np.testing.assert_allclose(q @ q.T, 4 * np.eye(3), atol=1e-5)


INITIALIZERS = [
    initializers.zeros,
    initializers.ones,
    initializers.constant(2.0),
    initializers.normal(),
    initializers.uniform(),
    initializers.truncated_normal(),
    initializers.glorot_normal(),
    initializers.orthogonal(),
]


@pytest.mark.parametrize("init", INITIALIZERS)
def test_sizes_may_be_arrays(init):
    for shape in ((snp.array(2), np.int64(3)), np.array([2, 3]), snp.array([2, 3]), [2, 3]):
        assert init(KEY, shape).shape == (2, 3)
    with pytest.raises(TypeError, match="shape must be an integer, got the float"):
        init(KEY, (2, 3.0))


def test_messages():
    cases = [
        (lambda: initializers.orthogonal()(KEY, (3,)), "orthogonal: expected a shape of two axes"),
        (lambda: initializers.delta_orthogonal()(KEY, (3, 4, 2)), "and outputs no fewer"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=f"initializers.*{words}"):
            call()


@pytest.mark.parametrize("init", [initializers.zeros, initializers.orthogonal()])
def test_sharding(init):
    assert init(KEY, (2, 2), None, None).shape == (2, 2)
    with pytest.raises(TypeError, match="out_sharding must be a sharding"):
        init(KEY, (2, 2), out_sharding="x")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_values_are_those_of_float32_rounded(dtype):
    for init in (
        initializers.normal(0.02),
        initializers.truncated_normal(0.02),
        initializers.uniform(0.3),
        initializers.lecun_normal(),
        initializers.orthogonal(),
    ):
        want = np.asarray(init(KEY, (40, 30))).astype(dtype)
        np.testing.assert_array_equal(init(KEY, (40, 30), dtype), want)


# What jax.nn.initializers gives for PRNGKey(0) and (2, 3), the layout of counters being its own.
SCALED = {
    "glorot_normal": [1.0468423, 1.2329134, -0.29671577, -0.05394943, 0.12079362, -0.65617436],
    "glorot_uniform": [0.9807893, 1.048516, -0.36743096, -0.06864396, 0.15311851, -0.7328462],
    "he_normal": [1.6552032, 1.9494075, -0.46914884, -0.08530156, 0.19099149, -1.0375029],
    "he_uniform": [1.550764, 1.6578493, -0.5809593, -0.10853563, 0.2421016, -1.1587315],
    "lecun_normal": [1.1704054, 1.3784391, -0.3317383, -0.0603173, 0.13505137, -0.7336252],
    "lecun_uniform": [1.0965558, 1.1722765, -0.410800308, -0.07674628, 0.17119169, -0.81934696],
}


@pytest.mark.parametrize("name", SCALED)
def test_figures_of_scaled(name):
    with st.config(threefry_partitionable=True):
        out = getattr(initializers, name)()(KEY, (2, 3))
    np.testing.assert_allclose(out.ravel(), SCALED[name], rtol=2e-5)


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


def test_messages_of_scaled():
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
