"""Accuracy, rounding and the dtype of a product, beside what the functions themselves do."""

import inspect

import numpy as np
import pytest

from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.ops import exponential
from stretto._engine.ops.bilinear import AccuracyMode, Tolerance
from stretto.lax import elementary as lax

NAMES = ["cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic"]
NAMES += ["rsqrt", "sin", "sqrt", "tan", "tanh"]


@pytest.mark.parametrize("name", NAMES)
def test_every_accuracy_is_met_in_one_way(name):
    function, x = getattr(lax, name), np.float32([0.5, 1.5])
    assert list(inspect.signature(function).parameters) == ["x", "accuracy"]
    assert "accuracy" in function.__doc__
    for accuracy in (AccuracyMode.HIGHEST, Tolerance(ulps=1)):
        np.testing.assert_array_equal(function(x, accuracy=accuracy), function(x))
    with pytest.raises(TypeError, match=f"{name}: accuracy must be"):
        function(x, accuracy=3)


def test_they_are_the_functions_of_numpy():
    assert lax.exp.__name__ == "exp"
    assert float(grad(lax.exp)(0.0)) == float(grad(exponential.exp)(0.0)) == 1.0


def test_halves():
    x = np.float32([0.5, 1.5, -0.5, -2.5, 0.49999997, -0.0, 8388609.0, np.inf, np.nan])
    even = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    np.testing.assert_array_equal(even, np.rint(x))
    away = np.float32([1, 2, -1, -3, 0, -0.0, 8388609.0, np.inf, np.nan])
    np.testing.assert_array_equal(lax.round(x), away)
    np.testing.assert_array_equal(np.signbit(lax.round(x)), np.signbit(away))
    assert lax.round(np.int32(3)).dtype == np.int32
    with pytest.raises(ValueError, match="3 is not a valid RoundingMethod"):
        lax.round(x, 3)
