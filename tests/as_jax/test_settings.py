"""``jax.config``."""

from tests.as_jax.running import fails, prints


def test_names_and_values():
    assert prints(
        """
        print(jax.config.jax_enable_x64, jax.config.jax_threefry_partitionable)
        jax.config.update("jax_enable_x64", True)
        print(jnp.ones(2).dtype, st.config.enable_x64, jax.config.x64_enabled)
        with jax.enable_x64(False):
            print(jnp.ones(2).dtype, jax.config.read("jax_enable_x64"))
        with jax.numpy_rank_promotion("raise"), jax.checking_leaks(), jax.disable_jit(disable=True):
            print(jax.config.jax_numpy_rank_promotion, jax.config.jax_check_tracer_leaks)
        print(jax.config.jax_check_tracer_leaks)
        """
    ) == ["False True", "float64 True True", "float32 False", "raise True", "False"]


def test_the_environment():
    environ = {"JAX_ENABLE_X64": "1", "JAX_NUMPY_RANK_PROMOTION": "warn"}
    assert prints(
        "print(jax.config.jax_enable_x64, jax.config.jax_numpy_rank_promotion)", **environ
    ) == ["True warn"]


def test_formulas_stay_as_jax_traces_them():
    assert prints(
        """
        traced = str(jax.make_jaxpr(lambda x: jnp.log(1 - jax.nn.sigmoid(x)))(1.0))
        print(st.config.stable_forms, "logistic" in traced, "log1p" in traced)
        print(jax.jit(lambda x: jnp.log(1 + x))(1e-9))
        """
    ) == ["False True False", "0.0"]


def test_what_jax_does_not_have_is_an_error():
    assert fails("jax.config.update('jax_nonsense', 1)") == (
        "AttributeError: Unrecognized config option: jax_nonsense"
    )
    assert "must be among 'cpu', 'gpu' and 'cuda'" in fails(
        "jax.config.update('jax_platforms', 'tpu')"
    )
    assert "expected value" in fails("jax.debug_nans(1, 2)")


def test_wide_integers_wrap_as_in_jax():
    assert prints(
        """
        import numpy as np
        wide = np.array([2**40 + 7, 3])
        print(jnp.asarray(wide).tolist(), (jnp.array([5]) < np.int64(2**40)).tolist())
        print(jax.jit(lambda x: x + 1)(wide).tolist())
        print(jax.random.key_data(jax.random.key(2**32 + 1)).tolist())
        """
    ) == ["[7, 3] [False]", "[8, 4]", "[0, 1]"]
