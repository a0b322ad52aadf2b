"""Functions of ``jax.numpy`` that differ from Stretto's."""

import numpy as np

import stretto.numpy as snp
from stretto.compat.jax import numpy as jnp
from tests.compat.jax.running import prints


def test_nan_is_replaced_before_infinities():
    code = """
        print(jnp.nan_to_num(jnp.array([1, jnp.nan, jnp.inf]), nan=-jnp.inf, posinf=2).tolist())
        key = jax.random.key(0)
        print(jnp.nan_to_num(key) is key, jax.lax.select(True, key, key) == key)
    """
    assert prints(code) == [f"[1.0, {float(np.finfo(np.float32).min)}, 2.0]", "True True"]


def test_einsum_with_products_of_ones_own():
    code = """
    def product(x, y, numbers, **options):
        print(numbers, sorted(options))
        return 2 * jax.lax.dot_general(x, y, numbers, **options)

    x, y = jnp.arange(6.0).reshape(2, 3), jnp.ones((3, 2))
    print(jnp.einsum("ij,jk->ik", x, y, _dot_general=product).tolist())
    print(jnp.einsum("ij,jk->ik", x, y, _dot_general=jax.lax.dot_general).tolist())
    """
    numbers = "(((1,), (0,)), ((), ())) ['precision', 'preferred_element_type']"
    assert prints(code) == [numbers, "[[6.0, 6.0], [24.0, 24.0]]", "[[3.0, 3.0], [12.0, 12.0]]"]


def test_limits_are_numbers_of_their_dtype():
    code = "print(repr(jnp.finfo(jnp.float8_e4m3fn).max.astype(jnp.float32)))"
    assert prints(code) == ["np.float32(448.0)"]


def test_histograms_count_in_floats():
    counts, edges = jnp.histogram(snp.arange(5.0), 5)
    assert counts.dtype == edges.dtype == "float32" and counts.tolist() == [1.0] * 5
    assert type(jnp.finfo("float32").eps) is np.float32 and jnp.iinfo("int8").max == 127
