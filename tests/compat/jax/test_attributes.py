"""The attributes that clients read of arrays, traced values and keys, and checks of traces."""

import pytest

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


LEAKS = {
    "jit": "jax.jit(f)(1.0)",
    "vmap": "jax.vmap(f)(jnp.ones(2))",
    "scan": "jax.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)",
    "cond": "jax.lax.cond(True, f, lambda x: x, 1.0)",
    "while": "jax.lax.while_loop(lambda c: c < 3, lambda c: f(c) + 1, 1.0)",
    "shape": "jax.eval_shape(f, 1.0)",
    "jaxpr": "jax.make_jaxpr(f)(1.0)",
}
START = """
kept = []
def f(x):
    kept.append(x * 1)
    return x
"""


@pytest.mark.parametrize("call", LEAKS.values(), ids=LEAKS)
def test_a_tracer_that_is_left_is_an_error(call):
    said = prints(
        f"""
        {START.replace(chr(10), chr(10) + " " * 8)}
        with jax.checking_leaks():
            try:
                {call}
            except Exception as error:
                print(error)
        """
    )
    assert "Leaked trace" in said[0] and "Leaked tracer(s):" in said[0]
    assert "which is in: list" in said[2]


def test_what_leaves_none_is_as_ever():
    assert prints(
        """
        jax.config.update("jax_check_tracer_leaks", True)
        def loss(w, x):
            h, _ = jax.lax.scan(lambda c, r: (jnp.tanh(w @ c + r), c.sum()), x[0], x)
            return jax.lax.cond(h.sum() > 0, lambda h: h.sum(), lambda h: (h * h).sum(), h)
        w, x = jnp.eye(3), jnp.ones((4, 3))
        step = jax.jit(lambda w, x: w - 0.1 * jax.grad(loss)(w, x))
        print(step(w, x).shape, jax.vmap(step, (None, 0))(w, jnp.ones((2, 4, 3))).shape)
        both = jax.jit(jax.vmap(jax.value_and_grad(loss), (None, 0)))
        print(both(w, jnp.ones((2, 4, 3)))[0].shape)
        print(jax.hessian(lambda v: (v ** 3).sum())(jnp.ones(2)).tolist())
        print(jax.jit(lambda k: jax.random.normal(k, (2,)))(jax.random.key(0)).shape)
        print(jax.checkpoint(lambda v: jnp.sin(v))(1.0).shape, jax.linearize(jnp.sin, 1.0)[1](0.0))
        """
    ) == ["(3, 3) (2, 3, 3)", "(2,)", "[[6.0, 0.0], [0.0, 6.0]]", "(2,)", "() 0.0"]


def test_no_tracing():
    assert prints(
        """
        f = jax.jit(lambda x: x + 12.5)
        f(1.0)
        with jax.no_tracing():
            print(f(2.0))
        """
    ) == ["14.5"]
    (said,) = prints(
        """
        with jax.no_tracing():
            try:
                jax.jit(lambda x: x + 12.5)(1.0)
            except RuntimeError as error:
                print(error)
        """
    )
    assert "'no_tracing' is set: call it with the same shapes" in said
