"""The attributes that clients read of arrays, traced values and keys."""

from tests.compat.jax.running import prints


def test_aval_and_trace():
    assert prints(
        """
        import weakref
        def f(x, key):
            print(x.aval, key.aval, x._trace is not None, weakref.ref(x)() is x)
            return x
        jax.jit(f)(jnp.ones(2), jax.random.key(0))
        key = jax.random.key(0)
        print(jnp.ones(2).aval, jax.typeof(key), key.weak_type, key.is_fully_addressable)
        key.delete()
        print(key.is_deleted())
        """
    ) == ["float32[2] key<fry>[] True True", "float32[2] key<fry>[] False True", "True"]


def test_lowered_functions():
    assert prints(
        """
        lowered = jax.jit(lambda x: x @ x).lower(jnp.ones((2, 2)))
        text = lowered.compiler_ir(dialect="hlo").as_hlo_text()
        print("dot(" in text, "metadata" in text, "dot_general" in str(lowered.compiler_ir()))
        """
    ) == ["True False True"]


def test_names_of_dtypes_are_found_among_numpys_classes():
    code = "print(np.int32 in {jnp.int32}, jnp.int32 in {np.int32}, {jnp.int32: 1}[jnp.int32])"
    assert prints(code) == ["True True 1"]


def test_memory():
    assert prints(
        """
        x = jnp.zeros(1000) + 1
        pointer = x.unsafe_buffer_pointer()
        print(isinstance(pointer, int), pointer == x.unsafe_buffer_pointer())
        y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
        print(x.is_deleted(), y.is_deleted())
        y.delete()
        print(y.is_deleted())
        """
    ) == ["True True", "True False", "True"]
