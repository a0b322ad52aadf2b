"""References, and objects that give arrays."""

from tests.compat.jax.running import prints


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
