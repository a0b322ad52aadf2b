"""``install``, and what ``import jax`` gives afterwards."""

import re

from tests.compat.jax.running import fails, prints


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
    ) == ["0.10.2 jax jax.numpy jax.scipy.linalg", "True True True", "True", "True True True"]


def test_metadata_say_which_version_is_presented():
    assert prints(
        """
        import importlib.metadata as metadata
        print(metadata.version("jax"), metadata.distribution("jax").metadata["Name"])
        print(metadata.version("numpy") == np.__version__, metadata.files("jax"))
        print(len([d for d in metadata.distributions() if d.metadata["Name"] == "jax"]) > 0)
        try:
            metadata.version("jaxlab")
        except metadata.PackageNotFoundError as error:
            print(error)
        """
    ) == ["0.10.2 jax", "True None", "True", "No package metadata was found for jaxlab"]


def test_private_modules_have_the_names_that_are_public_elsewhere():
    assert prints(
        """
        import jax._src.core as core
        from jax._src import api, effects, linear_util, mesh, pjit
        from jax._src.lax import lax
        from jax._src.nn.functions import relu
        from jax._src.tree_util import _registry
        print(core.Primitive is jax.extend.core.Primitive, core.ShapedArray is jax.core.ShapedArray)
        print(api.jit is jax.jit, lax.add is jax.lax.add, relu is jax.nn.relu)
        print(mesh.Mesh is jax.sharding.Mesh, effects.Effects is jax.core.Effects)
        print(linear_util.wrap_init is jax.extend.linear_util.wrap_init, pjit.jit_p)
        entry = _registry[dict]
        print(*entry.to_iter({"b": 1, "a": 2}), entry.from_iter(("a", "b"), (2, 1)))
        print(jax.lax.linalg.cholesky_p, jax.lax.linalg.lu_p, jax.host_id(), jax.host_count())
        policies = jax.checkpoint_policies, st.checkpoint_policies
        print(policies[0].everything_saveable is policies[1].everything_saveable)
        """
    ) == [
        "True True",
        "True True True",
        "True True",
        "True jit",
        "[2, 1] ('a', 'b') {'a': 2, 'b': 1}",
        "cholesky lu 0 1",
        "True",
    ]
    assert "No module named 'jax.config'" in fails("import jax.config")


def test_what_profiles_and_listeners_have():
    assert prints(
        """
        with jax.profiler.StepTraceAnnotation("train", step_num=3):
            pass
        heard = []
        listen = lambda event, **more: heard.append(event)
        jax.monitoring.register_event_listener(listen)
        jax.monitoring.record_event("one")
        jax.monitoring.unregister_event_listener(listen)
        jax.monitoring.record_event("two")
        print(heard)
        try:
            jax.monitoring.unregister_event_listener(listen)
        except ValueError as error:
            print("is not registered" in str(error))
        try:
            jax.profiler.start_server(1)
        except NotImplementedError as error:
            print("jax.profiler.trace(folder)" in str(error))
        """
    ) == ["['one']", "True", "True"]


def test_sparse_matrices_that_there_are_not():
    assert prints(
        """
        from jax.experimental.sparse import BCOO, BCSR, JAXSparse, linalg, sparsify
        one = BCOO((jnp.ones(1), jnp.zeros((1, 2), int)), shape=(2, 2))
        print(isinstance(one, JAXSparse), isinstance(one, BCSR))
        for f in (sparsify, BCSR, linalg.spsolve):
            try:
                f(one)
            except NotImplementedError as error:
                print("is not in Stretto" in str(error))
        """
    ) == ["True False", "True", "True", "True"]


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
    ours = "n.startswith(('stretto.as_jax', 'stretto.compat'))"
    code = f"import stretto, sys; print([n for n in sys.modules if {ours}])"
    assert prints(code, start="") == ["[]"]
    code = (
        "import stretto as st, sys; st.as_jax.install(); import jax; print('jaxlib' in sys.modules)"
    )
    assert prints(code, start="") == ["False"]


def test_modules_of_strettos_alone_are_not_there():
    message = fails("import jax\njax.ensemble")
    assert "module 'jax' has no attribute 'ensemble'" in message
