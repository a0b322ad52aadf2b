"""Slopes in float32 are those in float64: see `slopes.py`."""

import importlib
import pkgutil

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.compat.jax import nn as jax_nn
from stretto.nn import functional as F
from tests.functions import entries, slopes

for _, name, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{name}")

FUNCTIONS = slopes.functions()

AT_ZERO = {
    *(f"gumbel_{side}.{method}" for side in "lr" for method in ("pdf", "logpdf", "cdf", "sf")),
    "logaddexp(x, -x)",
}
"""Slopes that are the difference of two numbers near 1, and 0 at 0: as though x were known to a
unit of 1 there, and not to its own."""

FIRST = {
    "cross_entropy of 3 classes, 1": "the softmax of the others, whose sure class has slope 0",
    "gumbel_l.logcdf": "log(1 - exp(-t)) with t = exp(-y): terms of 1 / t² cancel",
    "gumbel_r.logsf": "as gumbel_l.logcdf",
    "numpy.angle": "0 / x⁴, whose divisor is 0 below 1e-10",
}
"""Those whose second order is not held to the law, and why."""

NOT_HELD = {
    "scipy.stats.poisson.entropy": "an alternating sum: 1e-4 is lost at 64",
    "special.i0e": "i1e - i0e cancels like 1 / 2x: 35 units at 77",
    "special.i1e": "as i0e: 37 units at 71",
}
"""Functions whose slopes lose more digits than the law allows, far out, and how many."""


def test_what_the_law_is_for():
    held = FUNCTIONS.keys() - NOT_HELD.keys()
    for name in ("lax.tanh", "lax.logistic", "lax.expm1", "expon.cdf", "nn.elu", "nn.gelu"):
        assert name in held
    assert len(held) > 150
    assert AT_ZERO | FIRST.keys() | NOT_HELD.keys() <= FUNCTIONS.keys()


def held(name):
    function = FUNCTIONS[name]
    scale = (lambda x: np.maximum(np.abs(x), 1)) if name in AT_ZERO else np.abs
    for way, order, off, x, got, want in slopes.units_off(function, scale):
        if order == 2 and name in FIRST:
            continue
        assert off <= slopes.UNITS, (
            f"{name}, {way}, order {order}: {off:.3g} units at {x}: {got}, expected {want}"
        )


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - NOT_HELD.keys()))
def test_slopes_keep_their_digits(name):
    held(name)


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (nn.elu, -20.0, np.exp(-20.0)),
        (nn.sigmoid, 17.0, np.exp(-17.0) / (1 + np.exp(-17.0)) ** 2),
        (snp.tanh, -12.0, 1 / np.cosh(12.0) ** 2),
        (snp.expm1, -30.0, np.exp(-30.0)),
        (F.tanhshrink, 1e-3, np.tanh(1e-3) ** 2),
        (lambda x: F.cross_entropy(snp.stack([x, 0 * x]), 0), 20.0, -np.exp(-20.0)),
        (lambda x: nn.softmax(snp.stack([x, 0 * x]), -1)[0], 20.0, np.exp(-20.0)),
        (lambda x: F.binary_cross_entropy_with_logits(x, 0 * x), -30.0, np.exp(-30.0)),
    ],
)
def test_slopes_by_definition(f, x, slope):
    for g in (st.grad(f), st.jit(st.grad(f))):
        np.testing.assert_allclose(g(x), slope, rtol=2e-6)


def test_values_keep_their_digits_where_slopes_do():
    # x³ / 3 - 2 x⁵ / 15: the difference of x and tanh(x) has no digit of it
    assert abs(F.tanhshrink(1e-3).item() / (1e-9 / 3) - 1) < 1e-6
    assert abs(nn.gelu(-5.0, "tanh").item() / -2.2917e-07 - 1) < 1e-3
    assert abs(jax_nn.squareplus(-50.0).item() / ((np.sqrt(2504) - 50) / 2) - 1) < 1e-6
    assert abs(F.cross_entropy(snp.array([20.0, 0.0]), 0).item() / np.exp(-20.0) - 1) < 1e-6
