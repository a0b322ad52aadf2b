"""Three ways of making the same draws, in both counter layouts."""

import numpy as np
import pytest

from stretto import random as R
from stretto._engine.api.jit import jit
from stretto._engine.api.vectorise import vmap
from stretto.laws import FULLY


def eagerly(draws):
    key = R.PRNGKey(0x123456789)
    return {name: np.asarray(draw(key)) for name, (draw, *_) in draws.items()}


def jitted(draws):
    together = lambda key: {name: draw(key) for name, (draw, *_) in draws.items()}
    all_at_once = jit(together, compiler_options=FULLY)  # JAX's numbers are of code as users get it
    return {name: np.asarray(x) for name, x in all_at_once(R.PRNGKey(0x123456789)).items()}


def mapped(draws):
    keys = np.stack([np.asarray(R.PRNGKey(seed)) for seed in (1, 0x123456789)])
    return {name: np.asarray(vmap(draw)(keys))[1] for name, (draw, *_) in draws.items()}


@pytest.fixture(params=[eagerly, jitted, mapped])
def how(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["original", "partitionable"])
def partitionable(request):
    return request.param
