"""Each presented module can be imported, and names what it has."""

import importlib
import pkgutil

import numpy as np
import pytest

from stretto.as_jax import presented
from tests.as_jax.running import prints

NAMES = [m.name for m in pkgutil.walk_packages(presented.__path__, f"{presented.__name__}.")]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_a_module_lists_are_there(name):
    module = importlib.import_module(name)
    assert all([hasattr(module, n) for n in getattr(module, "__all__", ())])
    assert module.__doc__


def test_all_are_found_as_jax():
    paths = [name.partition("presented.")[2] for name in NAMES]
    code = "\n".join(f"import jax.{path}" for path in paths) + "\nprint(len(dir(jax)) > 100)"
    assert prints(code) == ["True"]


def test_nan_is_replaced_before_infinities():
    code = (
        "print(jnp.nan_to_num(jnp.array([1, jnp.nan, jnp.inf]), nan=-jnp.inf, posinf=2).tolist())"
    )
    assert prints(code) == [f"[1.0, {float(np.finfo(np.float32).min)}, 2.0]"]
