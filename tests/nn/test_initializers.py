"""Initializers: JAX's numbers, dtypes, orthogonality, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import initializers

KEY = st.random.PRNGKey(0)

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
