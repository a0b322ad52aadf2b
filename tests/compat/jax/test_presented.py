"""Each presented module can be imported, and names what it has."""

import importlib
import pkgutil

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.compat.jax import presented
from stretto.compat.jax.table import ROWS
from tests.compat.jax.running import prints

NAMES = [m.name for m in pkgutil.walk_packages(presented.__path__, f"{presented.__name__}.")]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_a_module_lists_are_there(name):
    module = importlib.import_module(name)
    assert all([hasattr(module, n) for n in getattr(module, "__all__", ())])
    assert module.__doc__


def test_all_are_found_as_jax():
    paths = [*ROWS, *[name.partition("presented.")[2] for name in NAMES]]
    code = "\n".join(f"import jax.{path}" for path in paths) + "\nprint(len(dir(jax)) > 100)"
    assert prints(code) == ["True"]


def test_nan_is_replaced_before_infinities():
    code = """
        print(jnp.nan_to_num(jnp.array([1, jnp.nan, jnp.inf]), nan=-jnp.inf, posinf=2).tolist())
        key = jax.random.key(0)
        print(jnp.nan_to_num(key) is key, jax.lax.select(True, key, key) == key)
    """
    assert prints(code) == [f"[1.0, {float(np.finfo(np.float32).min)}, 2.0]", "True True"]


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


def test_references():
    code = """
        ref = jax.new_ref(jnp.zeros(3))
        print(isinstance(ref, jax.Ref), jax.typeof(ref), ref.aval.shape, jax.ArrayRef is jax.Ref)
        jax.ref.addupdate(ref, 0, 2.0)
        print(jax.ref.swap(ref, 0, 5.0), jax.ref.get(ref, slice(0, 2)), jax.ref.get(ref, ...))
        jax.ref.set(ref, ..., jnp.ones(3))
        jax.ref.addupdate(ref.at[1], ..., 1.0)
        print(ref, jax.ref.empty_ref(jax.ShapeDtypeStruct((2,), "int32")))
        print(jax.typeof(ref) == jax.typeof(jax.new_ref(jnp.ones(3))))
        print(jax.tree.leaves(ref) == [ref])
        print(jax.freeze(ref))
        print(str(jax.make_jaxpr(lambda r: r.set(1.0))(jax.new_ref(2.0))).count("1.0"))
    """
    assert prints(code) == [
        "True Ref{float32[3]} (3,) True",
        "2.0 [5. 0.] [5. 0. 0.]",
        "Ref([1., 2., 1.], dtype=float32) Ref([0, 0], dtype=int32)",
        "True",
        "True",
        "[1. 2. 1.]",
        "1",
    ]


def test_objects_that_give_arrays():
    code = """
        class Twice:
            def __init__(self, x):
                self.x = x
            def __jax_array__(self):
                return 2 * self.x
        f = lambda x: jnp.sin(Twice(x)) + Twice(x) * Twice(x).x + (x + Twice(x))
        print(jnp.array(Twice(3.0)), jax.jit(f)(0.0), jax.grad(f)(1.0) > 6)
    """
    assert prints(code) == ["6.0 0.0 True"]


def test_meshes_in_use_are_abstract_meshes():
    code = """
        from jax.sharding import AbstractMesh, AxisType, get_abstract_mesh
        print(get_abstract_mesh().empty)
        mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
        with jax.set_mesh(mesh):
            now = get_abstract_mesh()
            print(isinstance(now, AbstractMesh), now == mesh, now.axis_types, now.are_all_axes_auto)
            print(jax.NamedSharding(now, jax.P("x")).spec, AbstractMesh((1,), ("x",)) == now)
    """
    assert prints(code) == [
        "True",
        "True True (<AxisType.Auto: 1>,) True",
        "PartitionSpec('x') True",
    ]


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
