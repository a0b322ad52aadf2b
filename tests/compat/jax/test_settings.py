"""``jax.config``."""

from tests.compat.jax.running import fails, prints


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


def test_what_would_change_results_or_checks_and_does_not_is_refused():
    lines = prints(
        """
        for name, value in [
            ("jax_transfer_guard", "disallow"), ("jax_transfer_guard_host_to_device", "log"),
            ("jax_debug_key_reuse", True), ("jax_legacy_prng_key", "error"),
            ("jax_dump_ir_to", "folder"), ("jax_error_checking_behavior_nan", "raise"),
            ("jax_array_garbage_collection_guard", "fatal"),
        ]:
            before = getattr(jax.config, name)
            setter = lambda: setattr(jax.config, name, value)
            for use in (lambda: jax.config.update(name, value), setter):
                try:
                    use()
                except NotImplementedError as error:
                    print(error)
            assert getattr(jax.config, name) == before
            jax.config.update(name, before)
        for block in (jax.transfer_guard("disallow"), jax.debug_key_reuse(True)):
            try:
                with block:
                    print("not refused")
            except NotImplementedError as error:
                print(error)
        with jax.transfer_guard("allow"), jax.debug_key_reuse(False):
            print("taken")
        """
    )
    assert lines[-1] == "taken" and len(lines) == 17 and "not refused" not in lines
    assert lines[0] == (
        "jax.config.update: jax_transfer_guard must be None or 'allow' in Stretto, got 'disallow': "
        "what moves between devices and the host is not watched here"
    )
    assert fails("import jax", JAX_TRANSFER_GUARD="disallow").startswith("NotImplementedError")


def test_the_offset_of_seeds():
    """The numbers are JAX 0.10.2's."""
    assert prints(
        """
        jax.config.update("jax_random_seed_offset", 7)
        for seed in (3, np.uint32(3), jnp.int32(3), -8, 2**32 + 1):
            print(jax.random.PRNGKey(seed), jax.random.key_data(jax.random.key(seed)))
        jax.config.update("jax_random_seed_offset", 0)
        print(jax.random.PRNGKey(3))
        """
    ) == [
        *["[ 0 10] [ 0 10]"] * 3,
        "[         0 4294967295] [         0 4294967295]",
        *("[0 8] [0 8]", "[0 3]"),
    ]
    assert "must be an integer of 32 bits" in fails(
        "jax.config.update('jax_random_seed_offset', 'x')"
    )


def test_typed_keys_by_default():
    assert prints(
        """
        with jax.enable_custom_prng(True):
            print(jax.random.PRNGKey(3).dtype)
        print(jax.random.PRNGKey(3).dtype)
        """
    ) == ["key<fry>", "uint32"]
