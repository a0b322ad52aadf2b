"""The folder of compiled programs, notes for the compiler, and sparse matrices."""

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


def test_sparse_matrices_multiply_stacks_of_matrices():
    code = """
    from jax.experimental.sparse import BCOO
    dense = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 3.0]], np.float32)
    a, x = BCOO.fromdense(dense), np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    print((a @ x).tolist() == (dense @ x).tolist(), (a @ x[0, :, 0]).tolist())
    print((x.swapaxes(1, 2) @ a.T).tolist() == (x.swapaxes(1, 2) @ dense.T).tolist())
    """
    assert prints(code) == ["True [8.0, 0.0, 12.0]", "True"]
