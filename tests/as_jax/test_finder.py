"""``install``, and what ``import jax`` gives afterwards."""

import re

from tests.as_jax.running import fails, prints


def test_modules_are_views_of_strettos():
    assert prints(
        """
        import jax.scipy.stats.norm as norm, jax.numpy.fft
        from jax.scipy import linalg
        from jax import lax, tree_util
        st.as_jax.install()  # again: nothing happens
        print(jax.__version__, jax.__name__, jnp.__name__, linalg.__name__)
        print(jnp.sin is st.numpy.sin, jnp.fft.fft is st.fft.fft, lax.scan is st.lax.scan)
        print(float(norm.pdf(0.0)) == float(st.scipy.stats.norm.pdf(0.0)))
        print(jax is __import__("sys").modules["jax"], jax.numpy is jnp, jnp.ndarray is jax.Array)
        """
    ) == [
        "0.10.2 jax jax.numpy jax.scipy.linalg",
        "True True True",
        "True",
        "True True True",
    ]


def test_a_name_that_is_missing_says_so():
    assert "jax.numpy', as Stretto presents it, has no attribute 'nonsense'" in fails(
        "jnp.nonsense"
    )
    assert "No module named 'jax.nonsense'" in fails("import jax.nonsense")


def test_refused_where_jax_is_there_already():
    message = fails(
        """
        import sys, types
        sys.modules["jax"] = types.ModuleType("jax")
        import stretto as st
        st.as_jax.install()
        """,
        start="",
    )
    assert re.search("RuntimeError: stretto.as_jax.install: JAX was imported already", message)


def test_nothing_is_loaded_before_it_is_used():
    code = "import stretto, sys; print([n for n in sys.modules if 'as_jax' in n])"
    assert prints(code, start="") == ["[]"]
    code = (
        "import stretto as st, sys; st.as_jax.install(); import jax; print('jaxlib' in sys.modules)"
    )
    assert prints(code, start="") == ["False"]


def test_modules_of_strettos_alone_are_not_there():
    message = fails("import jax\njax.ensemble")
    assert "module 'jax' has no attribute 'ensemble'" in message
