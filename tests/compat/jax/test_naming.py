"""Names of other modules."""

import pytest

from stretto.compat.jax.naming import names_of


def test_the_first_module_that_has_a_name_gives_it():
    get, names = names_of("stretto.random", "stretto.numpy")
    import stretto.numpy as snp  # noqa: PLC0415
    from stretto import random  # noqa: PLC0415

    assert get("beta") is random.beta and get("sin") is snp.sin
    assert {"beta", "sin"} <= set(names())
    with pytest.raises(AttributeError, match="nonsense"):
        get("nonsense")
    with pytest.raises(AttributeError, match="__path__"):
        get("__path__")
