"""Three ways of making the same draws, in both counter layouts."""

import numpy as np
import pytest

from stretto import random as R
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config
from stretto.laws import FULLY
from tests.random.seeds import jaxs_key


def eagerly(draws):
    key = jaxs_key()
    return {name: np.asarray(draw(key)) for name, (draw, *_) in draws.items()}


def jitted(draws):
    together = lambda key: {name: draw(key) for name, (draw, *_) in draws.items()}
    all_at_once = jit(together, compiler_options=FULLY)  # JAX's numbers are of code as users get it
    return {name: np.asarray(x) for name, x in all_at_once(jaxs_key()).items()}


def mapped(draws):
    keys = np.stack([np.asarray(key) for key in (R.PRNGKey(1), jaxs_key())])
    return {name: np.asarray(vmap(draw)(keys))[1] for name, (draw, *_) in draws.items()}


@pytest.fixture(params=[eagerly, jitted, mapped])
def how(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["original", "partitionable"])
def partitionable(request):
    return request.param


@pytest.fixture
def check(how, partitionable):
    """Compares draws with JAX's numbers: logarithms, roots and sums differ in the last digits."""

    def compare(draws, rtol, atol):
        with config(threefry_partitionable=partitionable):
            drawn = how(draws)
        for name, (_, *want) in draws.items():
            x = drawn[name]
            wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64).reshape(-1)
            np.testing.assert_allclose(wide, want[partitionable], rtol, atol, err_msg=name)

    return compare
