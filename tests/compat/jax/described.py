"""Expressions of ``jax``'s names, and their values as text: for JAX itself and for Stretto.

``benchmarks/as_jax_values.py`` writes down what JAX gives, in ``values.json``; ``test_values``
compares.
"""

import collections
import itertools

import numpy as np

__all__ = ["EXPRESSIONS", "FEW", "describe", "names"]

DTYPES = (
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    *("float16", "bfloat16", "float32", "complex64"),
)
WIDE = (*DTYPES, "int64", "uint64", "float64", "complex128")
INDICES = ("[1, 7]", "[-6, 2]", "[-1, -5]", "[[0, 5], [-5, -6]]", "9", "-9")

FEW = ("bool", "uint8", "int32", "float16", "float32", "complex64")
_of_few = "[tried(lambda: {0}) for d in FEW]"
_of_dtypes = "[tried(lambda: {0}) for d in DTYPES]"
_arrays = "(jnp.array([1, 2, 3, 4]).astype(d), jnp.array([1, 0, 2]).astype(d))"
_UNARY = """
abs sign negative sqrt cbrt square reciprocal exp expm1 log log1p sin arctan tanh floor rint conj
real imag angle deg2rad sinc nan_to_num sum prod mean std var median max ptp any argmax cumsum
cumprod nansum nanmean count_nonzero sort unique diff ediff1d gradient diag flip average cov
histogram bincount vander polyint polyder tril ones_like nonzero linalg.norm
fft.fft isfinite signbit
"""
_BINARY = """
add subtract multiply divide floor_divide remainder power float_power arctan2 hypot logaddexp
maximum copysign heaviside bitwise_and left_shift equal dot outer inner
kron polyval polyadd isclose append convolve correlate polymul searchsorted digitize where
"""


def _expressions():
    for x64 in (False, True):
        within = f"under({x64}, lambda: " + "{})"
        for a in WIDE:
            for f in ("promote_types", "result_type", "can_cast"):
                yield within.format(f"[str(jnp.{f}('{a}', b)) for b in WIDE]")
            numbers = f"[str(jnp.promote_types('{a}', b)) for b in (bool, int, float, complex)]"
            yield within.format(numbers)
    for f in ("jnp.convolve", "jnp.correlate", "jax.scipy.signal.convolve"):
        for mode in ("full", "same", "valid"):
            yield _of_dtypes.format(f"{f}(*{_arrays}, mode='{mode}')")
    for f in ("jax.scipy.signal.fftconvolve", "jax.scipy.signal.correlate", "jnp.polymul"):
        yield _of_dtypes.format(f"{f}(*{_arrays})")
    for f, square in itertools.product(("convolve2d", "correlate2d"), ("full", "same")):
        arrays = "jnp.arange(9).reshape(3, 3).astype(d), jnp.arange(4).reshape(2, 2).astype(d)"
        yield _of_dtypes.format(f"jax.scipy.signal.{f}({arrays}, mode='{square}')")
    for f in _UNARY.split():
        yield _of_few.format(f"jnp.{f}(jnp.array([1, 2, 3]).astype(d))")
    for f in _BINARY.split():
        for other in ("bool", "int32", "float16"):
            pair = f"jnp.array([1, 2, 3]).astype(d), jnp.array([1, 2, 3]).astype('{other}')"
            if f == "where":
                pair = f"jnp.array([True, False, True]), {pair}"
            yield _of_few.format(f"jnp.{f}({pair})")
    for index in INDICES:
        i = f"jnp.array({index})"
        x = "jnp.arange(0, 50, 10).astype(d)"
        for mode in ("", ", mode='fill'", ", mode='clip'", ", mode='wrap'", ", fill_value=7"):
            yield _of_few.format(f"jnp.take({x}, {i}{mode})")
        for mode in ("", ", mode='fill'", ", mode='clip'"):
            yield _of_few.format(f"jnp.take_along_axis({x}, {i}.ravel(), 0{mode})")
            for update in ("set(1", "add(1", "multiply(2", "max(3"):
                yield _of_few.format(f"{x}.at[{i}].{update}{mode})")
            yield _of_few.format(f"{x}.at[{i}].get({mode.removeprefix(', ')})")
        yield _of_few.format(f"{x}.take({i})")
        yield _of_few.format(f"{x}[{i}]")
        for mode in ("", ", mode='clip'", ", mode='wrap'"):
            yield _of_few.format(f"jnp.put({x}, {i}, 1{mode}, inplace=False)")
        yield f"jax.jit(jnp.take)(jnp.arange(5.0), {i})"
        yield f"jax.vmap(lambda r: jnp.take(r, {i}))(jnp.arange(6.0).reshape(2, 3))"
        yield f"jax.grad(lambda x: jnp.nansum(jnp.take(x, {i})))(jnp.arange(5.0))"
        for axis in (0, 1, -1, None):
            yield f"jnp.take(jnp.arange(12.0).reshape(3, 4), {i}, axis={axis})"
        for f in ("jax.nn.one_hot({}, 3)", "jnp.unravel_index({}, (2, 2))"):
            yield f.format(i)
        yield f"jnp.choose({i}, [10.0, 20.0, 30.0], mode='clip')"
        yield f"jnp.choose({i}, [10.0, 20.0, 30.0], mode='wrap')"
        yield f"jax.ops.segment_sum(jnp.ones({i}.size), {i}.ravel(), 3)"
        yield f"jax.lax.dynamic_slice(jnp.arange(5.0), ({i}.ravel()[0],), (2,))"
    for tree in (
        "dd",
        "[dd, {'z': dd, 'a': 1}]",
        "od",
        "{'b': 1, 'a': dd}",
        "P(dd, None)",
        "(None, 1)",
    ):
        yield f"jax.tree_util.tree_leaves({tree})"
        yield f"str(jax.tree_util.tree_structure({tree}))"
        yield f"repr(jax.tree_util.tree_map(str, {tree}))"
        pairs = f"jax.tree_util.tree_flatten_with_path({tree})[0]"
        yield f"[jax.tree_util.keystr(path) for path, _ in {pairs}]"
        yield f"jax.tree.leaves(jax.jit(lambda t: jax.tree.map(lambda x: x + 1, t))({tree}))"
    yield "jax.tree_util.tree_structure(dd) == jax.tree_util.tree_structure(other)"
    yield "repr(jax.tree_util.tree_map(lambda x, y: (x, y), dd, other))"
    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        keys = f"jax.random.split(jax.random.key(0, impl='{impl}'), 4)"
        for draw in (
            "uniform(k, (3,))",
            "bits(k, (3,), 'uint8')",
            "normal(k)",
            "randint(k, (3,), 0, 9)",
        ):
            yield f"jax.vmap(lambda k: jax.random.{draw})({keys})"
        yield f"jax.jit(jax.vmap(lambda k: jax.random.uniform(k, (3,))))({keys})"
        yield f"jax.random.key_data(jax.vmap(jax.random.split)({keys}))"
        yield f"jax.random.key_data(jax.vmap(jax.random.fold_in)({keys}, jnp.arange(4)))"
        nested = "jax.vmap(jax.vmap(lambda k: jax.random.uniform(k, (2,))))"
        yield f"{nested}({keys}.reshape(2, 2))"
        yield f"jax.vmap(lambda k: jax.random.bits(k[0], (2,)), in_axes=1)({keys}.reshape(2, 2))"
        step = "lambda k, _: (jax.random.split(k)[0], jax.random.uniform(k))"
        yield f"jax.vmap(lambda k: jax.lax.scan({step}, k, None, length=3)[1])({keys})"
    for offset in (7, -7, 2**31 - 1):
        for seed in ("3", "jnp.int32(3)", "-1", "np.uint32(3)"):
            yield f"offset({offset}, lambda: jax.random.PRNGKey({seed}))"
            yield f"offset({offset}, lambda: jax.random.key_data(jax.random.key({seed})))"
        yield f"offset({offset}, lambda: jax.jit(lambda s: jax.random.PRNGKey(s))(3))"


EXPRESSIONS = tuple(dict.fromkeys(_expressions()))


def names(jax, jnp):
    """What expressions may use."""

    def under(x64, f):
        with jax.enable_x64(x64):
            return f()

    def offset(value, f):
        jax.config.update("jax_random_seed_offset", value)
        try:
            return f()
        finally:
            jax.config.update("jax_random_seed_offset", 0)

    def tried(f):
        try:
            return f()
        except (TypeError, ValueError, NotImplementedError):
            return "refused"

    dd = collections.defaultdict(list, b=2, a=1, c=3)
    other = collections.defaultdict(list, c=30, a=10, b=20)
    od = collections.OrderedDict(b=2, a=1)
    return {
        **{"jax": jax, "jnp": jnp, "np": np, "DTYPES": DTYPES, "FEW": FEW, "WIDE": WIDE},
        **{"under": under, "offset": offset, "tried": tried},
        **{"dd": dd, "other": other, "od": od, "P": collections.namedtuple("P", "y x")},
    }


def describe(value):
    """A value as what JSON has: arrays as dtype, shape and the elements."""
    if isinstance(value, dict):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        elements = array.astype(np.float32)
    else:
        elements = array
    if elements.dtype.kind == "c":
        elements = np.stack([elements.real, elements.imag], -1)
    floats = elements.dtype.kind == "f"
    texts = [f"{x:.4g}" if floats else str(x) for x in elements.ravel().tolist()]
    return [array.dtype.name, list(array.shape), " ".join(texts)]
