"""The folder of compiled programs, and notes for the compiler."""

from tests.compat.jax.running import prints


def test_the_folder_is_noted():
    assert prints(
        """
        from jax.experimental.compilation_cache import compilation_cache
        from jax.experimental.xla_metadata import set_xla_metadata
        compilation_cache.set_cache_dir("/tmp/there")
        compilation_cache.reset_cache()
        print(jax.config.jax_compilation_cache_dir)
        with set_xla_metadata(a=1):
            print(set_xla_metadata(jnp.ones(1), b=2).tolist())
        """
    ) == ["/tmp/there", "[1.0]"]
