"""Whole and next numbers: the laws, special values, NumPy."""

import numpy as np
import pytest

from stretto import grad
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops import rounding as ops
from stretto.laws import bf16, check_special, f16, f32, f64, law, special_pairs, special_values

UNARY = {
    ops.Floor: ops.floor,
    ops.Ceil: ops.ceil,
    ops.Round: ops.round_,
    ops.IsFinite: ops.is_finite,
}
LAWS = [
    *(law(p, f, t(2, 3)) for p, f in UNARY.items() for t in (f32, bf16)),
    *(law(p, f, t(2, 3), mapped=False) for p, f in UNARY.items() for t in (f64, f16)),
    *(law(ops.Nextafter, ops.nextafter, t(2, 3), t(2, 3)) for t in (f32, f64, bf16)),
    law(ops.Floor, ops.floor, f32()),
    *(law(ops.RoundAway, ops.ROUND_AWAY, t(2, 3)) for t in (f32, bf16)),
    law(ops.Nextafter, ops.nextafter, f32(2, 0), f32(2, 0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


FUNCTIONS = {
    "floor": ops.floor,
    "ceil": ops.ceil,
    "round": ops.round_,
    "round_away": ops.ROUND_AWAY,
    "truncated": ops.truncated,
    "is_finite": ops.is_finite,
}


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"])
def test_special_floats(name):
    check_special(FUNCTIONS, special_values(name))
    check_special({"nextafter": ops.nextafter}, *special_pairs(name))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_shapes(shape):
    check_special(FUNCTIONS, np.ones(shape, np.float32))


def test_halves_go_to_the_even_number():
    np.testing.assert_array_equal(ops.round_(np.array([0.5, 1.5, 2.5, -0.5])), [0, 2, 2, -0.0])


def test_truncation_goes_towards_zero():
    out = ops.truncated(np.array([1.7, -1.7, -0.5]))
    np.testing.assert_array_equal(out, [1, -1, -0.0])
    assert np.signbit(out)[2]


def test_integers_are_whole_already():
    x = as_value(np.arange(3))
    assert ops.floor(x) is x and ops.ceil(x) is x and ops.round_(x) is x and ops.truncated(x) is x


def test_is_finite():
    out = ops.is_finite(1)
    assert bool(out)
    assert out.dtype == bool and not out.weak_type
    z = np.array([1 + 1j, complex(0, np.inf), complex(np.nan, 0)], np.complex64)
    np.testing.assert_array_equal(ops.is_finite(z), [True, False, False])


def test_derivatives():
    assert float(grad(ops.floor)(1.5)) == 0.0
    # a unit in the last place away: the derivative is that of x
    assert float(grad(ops.nextafter)(1.5, 2.0)) == 1.0
    assert float(grad(ops.nextafter, 1)(1.5, 2.0)) == 0.0


def test_refused():
    with pytest.raises(
        TypeError, match=r"floor: expected an array of kind float, got complex64\[\]"
    ):
        ops.floor(1j)
