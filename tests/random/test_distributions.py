"""Continuous distributions: JAX's numbers, moments, derivatives, refusals.

Which draws are compiled as a whole: many, at rest; and with the same numbers.
"""

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

import stretto as st
import stretto.numpy as snp
from stretto import random as R
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.config import config
from stretto._engine.ops.broadcast import reduce_sum
from stretto.compat.jax.modules import with_jax_draws
from stretto.random import distributions
from stretto.random.distributions import when_large
from tests.random.seeds import jaxs_key


def A(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order. Floats
# narrower than float32 are JAX's under `as_jax` alone.
DRAWS = {
    "uniform": (
        lambda k: R.uniform(k, (5,)),
        [0.06253922, 0.9521313, 0.3651868, 0.86360073, 0.83201706],
        [0.30051255, 0.34662247, 0.6046294, 0.8011228, 0.14331305],
    ),
    "uniform_odd_shape": (
        lambda k: R.uniform(k, (3, 1, 2)),
        [0.06253922, 0.9521313, 0.13646162, 0.86360073, 0.83201706, 0.61596],
        [0.30051255, 0.34662247, 0.6046294, 0.8011228, 0.14331305, 0.22793818],
    ),
    "uniform_between": (
        lambda k: R.uniform(k, (4,), minval=-3.0, maxval=5.0),
        [3.7376976, 3.9908886, -0.58352375, -1.9182444],
        [-0.5958996, -0.22702026, 1.8370352, 3.4089823],
    ),
    "uniform_rows": (
        lambda k: R.uniform(k, (2, 3), minval=A(3), maxval=A(3) + 2),
        [0.12507844, 2.9042625, 2.2729232, 1.7272015, 2.6640341, 3.23192],
        [0.6010251, 1.6932449, 3.2092588, 1.6022456, 1.2866261, 2.4558764],
    ),
    "uniform_bfloat16": (
        with_jax_draws(lambda k: R.uniform(k, (4,), "bfloat16")),
        [0.4296875, 0.03125, 0.21875, 0.9609375],
        [0.5, 0.546875, 0.1171875, 0.2890625],
    ),
    "uniform_float16": (
        with_jax_draws(lambda k: R.uniform(k, (3,), "float16", -1, 1)),
        [0.015625, 0.091796875, 0.52734375],
        [-0.21484375, -0.48828125, 0.984375],
    ),
    "uniform_float8": (
        with_jax_draws(lambda k: R.uniform(k, (5,), "float8_e4m3fn")),
        [0.0, 0.5, 0.75, 0.5, 0.5],
        [0.5, 0.5, 0.0, 0.25, 0.0],
    ),
    "normal": (
        lambda k: R.normal(k, (6,)),
        [-1.5338013, 1.6658795, -1.0963553, 1.0966407, 0.9621668, 0.29488736],
        [-0.5229269, -0.39445522, 0.26534832, 0.8456386, -1.065552, -0.74565405],
    ),
    "normal_bfloat16": (
        with_jax_draws(lambda k: R.normal(k, (4,), "bfloat16")),
        [-0.171875, -1.8359375, -0.76953125, 1.7890625],
        [0.0048828125, 0.123046875, -1.1796875, -0.55078125],
    ),
    "normal_complex": (
        lambda k: R.normal(k, (2,), "complex64"),
        [complex(-0.47404405, -0.65173715), complex(0.015978752, -1.393627)],
        [complex(0.537341, 0.8404761), complex(-1.2189065, 0.85645866)],
    ),
    "truncated_normal": (
        lambda k: R.truncated_normal(k, -1.0, 2.0, (5,)),
        [-0.80694336, 1.538729, -0.10649401, 1.105803, 0.9933894],
        [-0.24132094, -0.14489084, 0.3950625, 0.8944148, -0.594854],
    ),
    "truncated_normal_bounds": (
        lambda k: R.truncated_normal(k, A(3), A(3) + 1),
        [0.79772407, 1.685035, 2.1373203],
        [0.26002663, 1.2183394, 2.3335013],
    ),
    "exponential": (
        lambda k: R.exponential(k, (5,)),
        [0.06458036, 3.0392928, 0.4544245, 1.9921689, 1.7838929],
        [0.35740742, 0.42560017, 0.9279317, 1.6150676, 0.15468271],
    ),
    "gumbel": (
        lambda k: R.gumbel(k, (5,)),
        [-1.0195552, 3.0148668, -0.00731942, 1.9197425, 1.6933506],
        [-0.18420789, -0.05781508, 0.6868877, 1.506245, -0.66409105],
    ),
    "gumbel_highest": (
        lambda k: R.gumbel(k, (6,), mode="highest"),
        [0.3827606, -0.4330064, 2.464643, 1.9176513, 5.1529136, -0.9580058],
        [1.0288787, 0.85425466, 0.07479706, -0.4793771, 1.8663788, 1.3521221],
    ),
    "gumbel_high": (
        lambda k: R.gumbel(k, (5,), mode="high"),
        [0.580577, -0.2501258, 0.9897461, 1.2625358, 2.72063],
        [1.0288787, 0.8542547, 0.074797116, -0.4793768, 1.8663789],
    ),
    "laplace": (
        lambda k: R.laplace(k, (5,)),
        [2.0788138, -2.3461463, 0.31419897, -1.299022, -1.0907459],
        [0.5091185, 0.3663718, -0.23478462, -0.92192066, 1.2495764],
    ),
    "logistic": (
        lambda k: R.logistic(k, (5,)),
        [-2.707381, 2.9902403, -0.5529218, 1.8455242, 1.5999906],
        [-0.8448583, -0.6339189, 0.42479217, 1.3933265, -1.7880411],
    ),
    "cauchy": (
        lambda k: R.cauchy(k, (5,)),
        [-5.0240955, 6.5994387, -0.45081067, 2.1890464, 1.7156279],
        [-0.7240848, -0.5229638, 0.3410765, 1.3866415, -2.0689337],
    ),
    "maxwell": (
        lambda k: R.maxwell(k, (5,)),
        [1.7192215, 1.5087605, 0.57631445, 0.38038334, 1.93125],
        [0.70672286, 1.5512916, 0.31157762, 0.61296344, 0.94831496],
    ),
}


def test_draws_are_jaxs(how, partitionable):
    with config(threefry_partitionable=partitionable):
        drawn = how(DRAWS)
    for name, (_, *want) in DRAWS.items():
        x = drawn[name]
        # Uniform numbers are exact (to the digits given here); logarithms and the like differ in
        # the last digits, and a logarithm of nearly 1 by that much absolutely.
        eps = 0 if name.startswith("uniform") else float(ml_dtypes.finfo(x.dtype).eps)
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64).reshape(-1)
        np.testing.assert_allclose(
            wide, want[partitionable], rtol=max(4 * eps, 1e-7), atol=4 * eps, err_msg=name
        )


def test_the_documented_numbers():
    # To the digits given.
    same = lambda x, want: np.testing.assert_allclose(x, want, rtol=1e-7, atol=5e-9)
    key, subkey = R.split(jaxs_key())
    uniform = [0.2918682, 0.90834665, 0.13555491, 0.08107758, 0.9746183]
    same(R.uniform(subkey, (5,)), uniform)
    normal = [-0.67039955, 0.02259737]
    same(R.normal(key, (2,)), normal)
    same(jit(lambda k: R.normal(k, (2,)))(key), normal)
    with config(threefry_partitionable=True):
        key, subkey = R.split(jaxs_key())
        uniform = [0.8827039, 0.88709354, 0.4278561, 0.92221344, 0.96814275]
        same(R.uniform(subkey, (5,)), uniform)
        same(R.normal(key, (2,)), [0.75991493, -1.7237941])


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (R.uniform, stats.uniform()),
        (R.normal, stats.norm()),
        (R.exponential, stats.expon()),
        (R.gumbel, stats.gumbel_r()),
        (R.laplace, stats.laplace()),
        (R.logistic, stats.logistic()),
        (R.cauchy, stats.cauchy()),
        (R.maxwell, stats.maxwell()),
        (lambda k, s: R.gumbel(k, s, mode="high"), stats.gumbel_r()),
        (lambda k, s: R.gumbel(k, s, mode="highest"), stats.gumbel_r()),
        (lambda k, s: R.truncated_normal(k, -1, 2, s), stats.truncnorm(-1, 2)),
    ],
)
def test_follows_its_law(draw, law):
    # The key is fixed, so the test cannot fail by chance.
    x = np.asarray(draw(R.PRNGKey(12), (4000,)))
    assert stats.kstest(x, law.cdf).pvalue > 0.01


def test_complex_normal_has_unit_variance():
    x = np.asarray(R.normal(R.PRNGKey(1), (4000,), "complex64"))
    assert abs(np.mean(np.abs(x) ** 2) - 1) < 0.05
    assert abs(np.mean(x.real * x.imag)) < 0.05


def test_uniform_stays_below_the_upper_bound():
    for dtype in ("float32", "float16", "bfloat16", "float8_e4m3fn"):
        x = np.asarray(R.uniform(R.PRNGKey(0), (10000,), dtype)).astype(np.float64)
        assert (x >= 0).all()
        assert (x < 1).all()


def test_truncated_normal_stays_inside():
    for low, high in ((-1, 1), (3, 3.5), (-0.001, 0.001)):
        x = np.asarray(R.truncated_normal(R.PRNGKey(0), low, high, (1000,)))
        assert (x > low).all()
        assert (x < high).all()


def test_differentiates_with_respect_to_parameters():
    key = R.PRNGKey(0)
    slope = grad(lambda m: reduce_sum(R.uniform(key, (5,), None, 0.0, m), (0,)))(2.0)
    np.testing.assert_allclose(slope, np.asarray(R.uniform(key, (5,))).sum(), rtol=1e-6)


def test_refuses():
    key = R.PRNGKey(0)
    with pytest.raises(TypeError, match="dtype must be floating, got int32"):
        R.uniform(key, (2,), np.int32)
    with pytest.raises(ValueError, match=r"minval float32\[3\] does not broadcast to shape \(2,\)"):
        R.uniform(key, (2,), minval=np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="mode must be 'low', 'high' or 'highest'"):
        R.gumbel(key, mode="middle")


def test_empty():
    assert R.normal(R.PRNGKey(0), (0, 3)).shape == (0, 3)
    assert jit(lambda k: R.normal(k, (0, 3)))(R.PRNGKey(0)).shape == (0, 3)


def test_large_draws_at_rest_are_the_compiled_ones():
    key, shape = R.key(3), (2, 1 << 17)
    for draw in (R.normal, lambda k, s: R.uniform(k, s, minval=-1.0, maxval=2.0)):
        large = np.asarray(draw(key, shape))
        np.testing.assert_array_equal(large, jit(lambda k, draw=draw: draw(k, shape))(key))
        with config(disable_jit=True):
            np.testing.assert_allclose(large, draw(key, shape), rtol=1e-5, atol=1e-6)


def test_many_at_rest_are_compiled(monkeypatch):
    monkeypatch.setattr(distributions, "_LARGE", 10)
    traced = []

    def draw(x, n):
        traced.append(n)
        return x * n

    chosen = when_large(draw, (1,))
    x = snp.arange(4.0)
    np.testing.assert_array_equal(chosen(9, x, 3), 3 * np.arange(4))
    np.testing.assert_array_equal(chosen(9, x, 3), 3 * np.arange(4))
    assert len(traced) == 2  # called each time
    for _ in range(3):
        np.testing.assert_array_equal(chosen(10, x, 3), 3 * np.arange(4))
    assert len(traced) == 3  # traced once
    chosen(10, x, 4)
    assert len(traced) == 4  # a static argument
    np.testing.assert_array_equal(st.vmap(lambda x: chosen(10, x, 3))(x), 3 * np.arange(4))
    names = [e.primitive.name for e in st.make_graph(lambda x: chosen(10, x, 3))(x).equations]
    assert names == ["mul"]  # no call inside a transformation


def test_small_and_large_draws_have_the_same_numbers(monkeypatch):
    key = st.random.key(0)
    small = st.random.gamma(key, 2.0, (50,))
    monkeypatch.setattr(distributions, "_LARGE", 1)
    np.testing.assert_allclose(st.random.gamma(key, 2.0, (50,)), small, rtol=1e-6)
