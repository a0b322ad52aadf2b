"""One platform and one device: what is chosen, what passes, and what is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.errors import UnboundAxisError


def test_the_function_for_the_cpu_is_chosen():
    def one(x):
        return x + 1

    def other(x):
        return x - 1

    assert lax.platform_dependent(1.0, cpu=one, tpu=other, default=other) == 2
    assert lax.platform_dependent(1.0, tpu=one, default=other) == 0
    assert float(st.jit(lambda x: lax.platform_dependent(x, cpu=one))(1.0)) == 2
    with pytest.raises(NotImplementedError, match=r"a function for cpu or a default, got .* tpu"):
        lax.platform_dependent(1.0, tpu=one)


def test_a_composite_is_what_it_is_made_of():
    square = lax.composite(lambda x, *, scale: scale * x * x, "my.square", version=1)
    assert float(square(3.0, scale=2.0)) == 18
    assert float(st.grad(lambda x: square(x, scale=2.0))(3.0)) == 12
    assert "my.square.v1" in st.jit(lambda x: square(x, scale=2.0)).lower(3.0).as_text()


def test_a_sink_gives_nothing():
    assert lax.dce_sink({"x": snp.ones(2)}, prevent_mlir_dce=True) is None
    with pytest.raises(TypeError, match="dce_sink: val must be an array"):
        lax.dce_sink("text")


def test_one_example_for_all():
    x = snp.arange(6.0).reshape(3, 2)
    for run in (lambda f: f, st.jit):
        out = run(st.vmap(lambda v: lax.pbroadcast({"v": v}, "i", 2), axis_name="i"))(x)
        np.testing.assert_array_equal(out["v"], np.tile([4, 5], (3, 1)))
    with pytest.raises(ValueError, match="source must be from 0 to 2, got 3"):
        st.vmap(lambda v: lax.pbroadcast(v, "i", 3), axis_name="i")(x)


def test_types_of_values_along_device_axes():
    x = snp.arange(3)
    out = st.vmap(lambda v: lax.pcast(v, "i", to="varying"), axis_name="i")(x)
    np.testing.assert_array_equal(out, x)
    with pytest.raises(ValueError, match="to must be one of"):
        st.vmap(lambda v: lax.pcast(v, "i", to="same"), axis_name="i")(x)
    with pytest.raises(UnboundAxisError):
        lax.pcast(x, "i", to="varying")
    gathered = st.vmap(lambda v: lax.all_gather(v, "i", to="reduced"), axis_name="i")(x)
    np.testing.assert_array_equal(gathered, np.tile([0, 1, 2], (3, 1)))
    with pytest.raises(ValueError, match="all_gather: to must be"):
        st.vmap(lambda v: lax.all_gather(v, "i", to="same"), axis_name="i")(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lax.create_token, "there are no tokens"),
        (lax.after_all, "there are no tokens"),
        (lambda: lax.psend(1.0, "i", [(0, 1)]), "use ppermute"),
        (lambda: lax.precv(None, None, "i", [(0, 1)]), "use ppermute"),
        (lambda: lax.ragged_all_to_all(*range(6), axis_name="i"), "use all_to_all"),
        (lambda: lax.rng_uniform(0, 1, (2,)), "use random.uniform"),
    ],
    ids=["create_token", "after_all", "psend", "precv", "ragged_all_to_all", "rng_uniform"],
)
def test_refusals(call, words):
    with pytest.raises(NotImplementedError, match=words):
        call()
