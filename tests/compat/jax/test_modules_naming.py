"""Names of other modules, of draws in JAX's bits, and of what is refused."""

import numpy as np
import pytest

from stretto import random
from stretto.compat.jax.modules import RefusedName, drawing_names_of, names_of, with_jax_draws
from tests.compat.jax.running import prints


def test_a_module_has_the_names_of_another():
    get, names = names_of("stretto.numpy")
    import stretto.numpy as snp  # noqa: PLC0415

    assert get("sin") is snp.sin and {"sin"} <= set(names())
    with pytest.raises(AttributeError, match="nonsense"):
        get("nonsense")
    with pytest.raises(AttributeError, match="__path__"):
        get("__path__")


def test_narrow_draws_are_jaxs_there_alone():
    # What JAX 0.10.2 gives; its layout of random bits is the default there.
    code = """
        key = jax.random.PRNGKey(0x123456789)
        print(jax.random.normal(key, (4,), "bfloat16").tolist())
        print(jax.jit(lambda k: jax.random.uniform(k, (3,), "float16", -1, 1))(key).tolist())
        print(jax.nn.initializers.normal(1.0)(key, (4,), "bfloat16").tolist())
        from stretto import random
        print(random.normal(key, (4,), "bfloat16") == random.normal(key, (4,)).astype("bfloat16"))
    """
    bits = "[0.0048828125, 0.123046875, -1.1796875, -0.55078125]"
    uniform = "[-0.21484375, -0.48828125, 0.984375]"
    assert prints(code) == [bits, uniform, bits, "[ True  True  True  True]"]


def test_the_block_ends_with_the_call():
    key = random.PRNGKey(0)
    ours = np.asarray(random.normal(key, (9,), "bfloat16"))
    theirs = with_jax_draws(random.normal)
    assert (np.asarray(theirs(key, (9,), "bfloat16")) != ours).any()
    with pytest.raises(TypeError, match="int32"):
        theirs(key, (9,), "int32")
    np.testing.assert_array_equal(random.normal(key, (9,), "bfloat16"), ours)


def test_names_are_those_of_the_module():
    get, names = drawing_names_of("stretto.random")
    assert get("normal") is get("normal")
    assert get("normal").__wrapped__ is random.normal
    assert get("split") is random.split and get("PRNGKeyArray") is random.PRNGKeyArray
    assert {"normal", "split"} <= set(names())


def test_bounds_mean_what_they_mean_in_jax():
    x = with_jax_draws(random.truncated_normal)(random.PRNGKey(0), 2.0, 1.0, (3,))
    assert x.shape == (3,)


def test_importing_is_no_error():
    assert prints(
        """
        from jax.experimental import pallas as pl
        from jax.experimental.jax2tf import convert
        try:
            pl.pallas_call(lambda x: x)
        except NotImplementedError as error:
            print(error)
        """
    ) == [
        "jax.experimental.pallas.pallas_call is not in Stretto: kernels written for one kind of "
        "device are not part of Stretto: write the function in jax.numpy"
    ]


def test_the_name_grows_with_each_attribute():
    with pytest.raises(NotImplementedError, match=r"^a\.b\.c is not in Stretto: why$"):
        RefusedName("a", "why").b.c(1)
    assert not hasattr(RefusedName("a", "why"), "__array__")
    assert repr(RefusedName("a", "why")) == "<a, which is not in Stretto>"
