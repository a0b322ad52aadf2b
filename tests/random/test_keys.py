"""Keys and bits: published test vectors, and JAX's numbers."""

import inspect
import zlib

import numpy as np
import pytest

from stretto import random as R
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.config import config
from stretto._engine.core.errors import TracedValueError
from stretto.laws import FULLY

# Each draw, and what JAX 0.10.2 gives for the same expression with R = jax.random,
# k = PRNGKey(0x123456789), and jax_threefry_partitionable off, then on; in row-major order.
DRAWS = {
    "split": (
        R.split,
        [3617274360, 3753205001, 1297336295, 580763498],
        [4147644527, 3151391983, 2345107987, 3548103583],
    ),
    "split_three": (
        lambda k: R.split(k, 3),
        [268604172, 4089372947, 586098370, 3709136966, 3573486184, 2645528424],
        [4147644527, 3151391983, 2345107987, 3548103583, 3617274360, 1297336295],
    ),
    "split_shape": (
        lambda k: R.split(k, (2, 2)),
        [539398600, 3017746112, 2448100, 680757975, 76987084, 3695466800, 3417649260, 505455040],
        [
            4147644527,
            3151391983,
            2345107987,
            3548103583,
            3617274360,
            1297336295,
            268604172,
            3709136966,
        ],
    ),
    "fold_in": (lambda k: R.fold_in(k, 7), [1879776590, 3956557084], [1879776590, 3956557084]),
    "fold_in_large": (
        lambda k: R.fold_in(k, 2**32 - 1),
        [1418955383, 2187286183],
        [1418955383, 2187286183],
    ),
    "bits": (
        lambda k: R.bits(k, (5,)),
        [268604172, 4089372947, 1568465833, 3709136966, 3573486184],
        [1290691712, 1488732556, 2596863519, 3440796490, 615525124],
    ),
    "bits_scalar": (R.bits, [4147644527], [1290691712]),
    "bits_8": (
        lambda k: R.bits(k, (7,), "uint8"),
        [19, 130, 199, 139, 159, 195, 123],
        [128, 140, 31, 74, 4, 223, 52],
    ),
    "bits_16": (
        lambda k: R.bits(k, (3, 2), "uint16"),
        [14840, 55195, 57897, 54328, 51175, 19795],
        [25728, 16780, 65055, 25418, 11012, 10463],
    ),
}
WIDE = {
    "seed_negative": (lambda k: R.PRNGKey(-5), [4294967295, 4294967291], [4294967295, 4294967291]),
    "bits_64": (
        lambda k: R.bits(k, (3,), "uint64"),
        [14093252111493315942, 10529628104085025036, 6108454001921962505],
        [17122251220910407126, 12317099852969707961, 17182940003171341290],
    ),
    "uniform_64": (
        lambda k: R.uniform(k, (3,), "float64"),
        [0.7639967278333486, 0.5708122832956704, 0.33113995497057824],
        [0.928199098577682, 0.6677113209655321, 0.9314890440563224],
    ),
    "normal_64": (
        lambda k: R.normal(k, (3,), "float64"),
        [0.7192181073274835, 0.17844255256452093, -0.4367675841706501],
        [1.4625089161669498, 0.43360217088455094, 1.4869731146079666],
    ),
    "randint_64": (
        lambda k: R.randint(k, (3,), -5, 2**62),
        [2412247752201497835, 1338838419644758489, 4427351338743320351],
        [2759466585096871524, 850210940528387071, 3868155472398642707],
    ),
    "permutation_64": (
        lambda k: R.permutation(k, 8),
        [3, 2, 5, 4, 1, 6, 7, 0],
        [4, 0, 1, 2, 5, 3, 7, 6],
    ),
}
# The CRC-32 (zlib) of the bytes of larger draws.
LARGE = {
    "bits": (lambda k: R.bits(k, (1001,)), 3946983290, 989966224),
    "bits_8": (lambda k: R.bits(k, (1001,), "uint8"), 573247003, 3128148299),
    "uniform": (lambda k: R.uniform(k, (1001,)), 2225615979, 255153584),
    "randint": (lambda k: R.randint(k, (1001,), -7, 1000), 2465389084, 9206449),
    "permutation": (lambda k: R.permutation(k, 5000), 2649021812, 410299624),
}


def test_draws_are_jaxs(how, partitionable):
    with config(threefry_partitionable=partitionable):
        drawn = how(DRAWS)
    for name, (_, *want) in DRAWS.items():
        assert drawn[name].reshape(-1).tolist() == want[partitionable], name


def test_wide_draws_are_jaxs(how, partitionable):
    with config(threefry_partitionable=partitionable, enable_x64=True):
        drawn = how(WIDE)
    for name, (_, *want) in WIDE.items():
        # erf_inv of 64 bits is another approximation compiled than not.
        tolerance = 1e-14 if name.startswith("normal") else 0
        got = drawn[name].reshape(-1)
        np.testing.assert_allclose(got, want[partitionable], rtol=tolerance, err_msg=name)


def test_large_draws_are_jaxs(how, partitionable):
    with config(threefry_partitionable=partitionable):
        drawn = how(LARGE)
    for name, (_, *want) in LARGE.items():
        assert zlib.crc32(np.ascontiguousarray(drawn[name]).tobytes()) == want[partitionable], name


def test_seeds():
    for seed in (0, 42, 2**32 - 1, -1, -(2**63), 2**40 + 3, 2**64 - 1):
        short = -(2**31) <= seed < 2**32
        both = [0 if short else seed % 2**64 >> 32, seed % 2**32]
        assert R.key_data(R.key(seed)).tolist() == both
        assert R.PRNGKey(seed).tolist() == [0, seed % 2**32]  # raw keys are JAX's
        with config(integer_overflow="wrap"):  # as JAX has it
            assert R.key_data(R.key(seed)).tolist() == [0, seed % 2**32]
        assert R.PRNGKey(np.asarray(seed % 2**31, np.int32)).tolist() == [0, seed % 2**31]
        with config(enable_x64=True):
            assert R.PRNGKey(seed).tolist() == [seed % 2**64 >> 32, seed % 2**32]
    assert R.PRNGKey(np.int64(7)).tolist() == jit(R.PRNGKey)(7).tolist() == [0, 7]
    for seed in (np.int64(2**32 + 1), np.array(2**32 + 1)):
        assert R.PRNGKey(seed).tolist() == [0, 1]
        assert R.key_data(R.key(seed)).tolist() == [1, 1]
    with pytest.raises(OverflowError, match="seed is the integer 4294967297, int64"):
        jit(R.PRNGKey)(np.int64(2**32 + 1))
    with config(enable_x64=True):
        assert jit(R.PRNGKey)(np.int64(-2)).tolist() == [2**32 - 1, 2**32 - 2]


def test_seeds_refused():
    with pytest.raises(OverflowError, match="more than 64 bits"):
        R.PRNGKey(2**64)
    with pytest.raises(TypeError, match=r"one integer, got float32\[\]"):
        R.PRNGKey(1.5)
    with pytest.raises(TypeError, match=r"one integer, got int32\[2\]"):
        R.PRNGKey(np.arange(2, dtype=np.int32))


def test_split_unpacks_into_keys():
    key, subkey = R.split(R.PRNGKey(3))
    assert key.shape == subkey.shape == (2,)
    assert key.tolist() != subkey.tolist()
    assert R.split(key, 0).shape == (0, 2)


def test_fold_in_takes_integers_of_any_kind():
    key = R.PRNGKey(0)
    want = R.fold_in(key, 5).tolist()
    assert R.fold_in(key, np.int8(5)).tolist() == jit(R.fold_in)(key, 5).tolist() == want
    assert R.fold_in(key, -1).tolist() == R.fold_in(key, 2**32 - 1).tolist()
    with pytest.raises(OverflowError, match="more than 32 bits"):
        R.fold_in(key, 2**32)
    with pytest.raises(TypeError, match="one integer"):
        R.fold_in(key, 0.5)


def test_typed_keys_are_raw_ones_that_know_their_implementation():
    raw, typed = R.PRNGKey(7), R.key(7)
    assert R.key_data(typed).tolist() == R.key_data(raw).tolist() == raw.tolist()
    assert bool(R.wrap_key_data(raw) == typed)
    assert R.key_impl(typed) == R.key_impl(raw) == "threefry2x32"
    assert typed.dtype == R.key_dtype() == R.key_dtype("threefry2x32") != R.key_dtype("rbg")
    assert R.key(7, dtype=R.key_dtype("rbg")).dtype == R.key(7, impl="rbg").dtype
    for draw in (R.split, lambda k: R.fold_in(k, 3), R.clone):
        assert R.key_data(draw(typed)).tolist() == draw(raw).tolist()
        assert isinstance(draw(typed), R.PRNGKeyArray)
    for draw in (R.bits, R.normal, R.gumbel, lambda k: R.permutation(k, 9), lambda k: R.t(k, 3)):
        compiled = jit(draw, compiler_options=FULLY)  # whose roundings are those of NumPy
        assert draw(typed).tolist() == draw(raw).tolist() == compiled(typed).tolist()


def test_implementations_refused():
    with pytest.raises(ValueError, match="impl must be one of 'threefry2x32', 'rbg', 'unsafe_rbg'"):
        R.key(0, impl="fry")
    with pytest.raises(ValueError, match="give impl or dtype, and not both"):
        R.key(0, impl="rbg", dtype="rbg")
    with pytest.raises(TypeError, match="seed must be one integer, got a key"):
        R.key(R.key(0))
    with pytest.raises(TypeError, match=r"uint32\[..., 4\] for rbg, got uint32\[2\]"):
        R.wrap_key_data(R.PRNGKey(0), impl="rbg")
    with pytest.raises(TypeError, match=r"got keys of shape \(3,\) \(for several keys use vmap\)"):
        R.bits(R.split(R.key(0), 3))
    with pytest.raises(TypeError, match="bits: out_sharding must be a sharding"):
        R.bits(R.key(0), out_sharding="x")


def test_keys_refused():
    with pytest.raises(TypeError, match=r"expected a key, uint32\[2\], got int32\[\]"):
        R.bits(5)
    with pytest.raises(TypeError, match=r"got uint32\[3,2\] \(for several keys use vmap\)"):
        R.bits(R.split(R.PRNGKey(0), 3))
    with pytest.raises(TypeError, match="must be unsigned"):
        R.bits(R.PRNGKey(0), (2,), np.int32)


def test_shapes_are_static():
    key = R.PRNGKey(0)
    assert R.bits(key, 3).shape == (3,)
    assert R.bits(key, np.array([2, 3])).shape == (2, 3)
    with pytest.raises(ValueError, match="must not be negative"):
        R.bits(key, (2, -1))
    with pytest.raises(TracedValueError, match="static_argnums"):
        jit(lambda n: R.bits(key, n))(3)
    with pytest.raises(TracedValueError, match="static_argnums"):
        jit(lambda n: R.bits(key, (2, n)))(3)


ARGUMENTS = {
    "ball": (3,),
    "bernoulli": (),
    "beta": (1.0, 2.0),
    "binomial": (3, 0.5),
    "bits": (),
    "categorical": (np.zeros(3),),
    "cauchy": (),
    "chisquare": (3.0,),
    "choice": (3,),
    "dirichlet": (np.ones(3),),
    "double_sided_maxwell": (0.0, 1.0),
    "exponential": (),
    "f": (1.0, 2.0),
    "gamma": (2.0,),
    "generalized_normal": (1.5,),
    "geometric": (0.5,),
    "gumbel": (),
    "laplace": (),
    "loggamma": (2.0,),
    "logistic": (),
    "lognormal": (),
    "maxwell": (),
    "multinomial": (3, np.ones(2) / 2),
    "multivariate_normal": (np.zeros(2), np.eye(2)),
    "normal": (),
    "orthogonal": (2,),
    "pareto": (2.0,),
    "permutation": (3,),
    "poisson": (2.0,),
    "rademacher": (),
    "randint": ((), 0, 3),
    "rayleigh": (1.0,),
    "t": (3.0,),
    "triangular": (0.0, 0.5, 1.0),
    "truncated_normal": (-1.0, 1.0),
    "uniform": (),
    "wald": (1.0,),
    "weibull_min": (1.0, 2.0),
}


def test_the_draws_are_all_there():
    functions = {name for name in R.__all__ if inspect.isfunction(getattr(R, name))}
    draws = {
        name
        for name in functions
        if next(iter(inspect.signature(getattr(R, name)).parameters)) == "key"
    }
    assert draws - {"clone", "fold_in", "keys", "split"} == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_draw_names_itself_where_the_key_is_none(name):
    for key, words in (([1], "key must be an array"), (1.5, "expected a key")):
        with pytest.raises(TypeError, match=rf"^random\.{name}: {words}"):
            getattr(R, name)(key, *ARGUMENTS[name])
