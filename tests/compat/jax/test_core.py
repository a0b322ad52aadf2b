"""The names of ``jax.extend.core.primitives``, and of ``jax.extend.core``."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import float0
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.modules import module_of


def test_every_name_is_there():
    assert "jit_p" in dir(primitives)
    for name in dir(primitives):
        assert getattr(primitives, name) is getattr(primitives, name)
    for name in ("jit", "nonsense_p"):
        with pytest.raises(AttributeError):
            getattr(primitives, name)


core, primitives = module_of("extend.core"), module_of("extend.core.primitives")


def test_the_names_beside():
    for name in core.__all__:
        assert hasattr(core, name)
    assert core.gensym()(ShapedArray((), "float32")).aval.shape == ()
    assert core.primal_dtype_to_tangent_dtype("float32") == "float32"
    assert core.primal_dtype_to_tangent_dtype("int32") == float0


def test_what_is_going_on():
    seen = []

    def look(x):
        seen.append(
            (
                core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                core.unsafe_get_axis_names_DO_NOT_USE(),
            )
        )
        return x

    look(1.0)
    st.jit(look)(1.0)
    st.vmap(st.jit(look), axis_name="i")(snp.ones(2))
    st.jvp(st.vmap(look), (snp.ones(2),), (snp.ones(2),))
    assert [s[0] for s in seen] == [False, True, True, False]
    assert [s[1] for s in seen] == [False, False, False, True]
    assert seen[2][2] == ["i"]
    assert not core.nonempty_axis_env_DO_NOT_USE()
