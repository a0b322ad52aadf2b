"""Each presented module can be imported, and names what it has."""

import importlib
import pkgutil

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.as_jax import presented
from tests.as_jax.running import prints

NAMES = [m.name for m in pkgutil.walk_packages(presented.__path__, f"{presented.__name__}.")]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_a_module_lists_are_there(name):
    module = importlib.import_module(name)
    assert all([hasattr(module, n) for n in getattr(module, "__all__", ())])
    assert module.__doc__


def test_all_are_found_as_jax():
    paths = [name.partition("presented.")[2] for name in NAMES]
    code = "\n".join(f"import jax.{path}" for path in paths) + "\nprint(len(dir(jax)) > 100)"
    assert prints(code) == ["True"]


def test_nan_is_replaced_before_infinities():
    code = (
        "print(jnp.nan_to_num(jnp.array([1, jnp.nan, jnp.inf]), nan=-jnp.inf, posinf=2).tolist())"
    )
    assert prints(code) == [f"[1.0, {float(np.finfo(np.float32).min)}, 2.0]"]


def test_results_have_the_forms_of_jax():
    home = presented.__name__
    flatten_util, lax, jnp = [
        importlib.import_module(f"{home}.{name}") for name in ("flatten_util", "lax", "numpy")
    ]
    counts, edges = jnp.histogram(snp.arange(5.0), 5)
    assert counts.dtype == edges.dtype == "float32" and counts.tolist() == [1.0] * 5
    assert type(lax.top_k(snp.arange(3.0), 2)) is list
    vector, back = flatten_util.ravel_pytree({"w": snp.ones(2), "b": snp.zeros(1)})
    assert vector.tolist() == [0.0, 1.0, 1.0] and list(back(vector)) == ["b", "w"]
    assert type(jnp.finfo("float32").eps) is np.float32 and jnp.iinfo("int8").max == 127


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


def test_sparse_matrices_multiply_stacks_of_matrices():
    code = """
    from jax.experimental.sparse import BCOO
    dense = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 3.0]], np.float32)
    a, x = BCOO.fromdense(dense), np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    print((a @ x).tolist() == (dense @ x).tolist(), (a @ x[0, :, 0]).tolist())
    print((x.swapaxes(1, 2) @ a.T).tolist() == (x.swapaxes(1, 2) @ dense.T).tolist())
    """
    assert prints(code) == ["True [8.0, 0.0, 12.0]", "True"]
