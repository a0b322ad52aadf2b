"""The error function, its complement and its inverse: laws, special values, SciPy."""

import numpy as np
import pytest
from scipy import special

import stretto
from stretto._engine.core.config import enable_x64
from stretto._engine.ops.special import error_functions as ops
from stretto.laws import bf16, check_special, f32, f64, law, special_values

FUNCTIONS = {
    ops.Erf: (ops.erf, -2, 2),
    ops.Erfc: (ops.erfc, -2, 2),
    ops.ErfInv: (ops.erf_inv, -0.9, 0.9),
}
# Difference quotients are taken in 64 bits anyway, and vmap treats all dtypes alike.
LESS = {f64: {"derivative": False, "mapped": False}, bf16: {"mapped": False}}
LAWS = [
    law(p, f, t(2, 3).within(low, high), **LESS.get(t, {}))
    for p, (f, low, high) in FUNCTIONS.items()
    for t in (f32, f64, bf16)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"])
def test_special_floats(name):
    check_special({f.__name__: f for f, *_ in FUNCTIONS.values()}, special_values(name))


def test_they_are_scipy_s():
    x = np.linspace(-3, 3, 25)
    with enable_x64():
        np.testing.assert_allclose(ops.erf(x), special.erf(x), rtol=1e-14)
        np.testing.assert_allclose(ops.erfc(x), special.erfc(x), rtol=1e-14)
        np.testing.assert_allclose(ops.erf_inv(x / 4), special.erfinv(x / 4), rtol=1e-14)
    np.testing.assert_allclose(ops.erf_inv(x / 4), special.erfinv(x / 4), rtol=1e-5)
    np.testing.assert_array_equal(
        ops.erf_inv(np.array([-1.0, 1.0, 2.0])), [-np.inf, np.inf, np.nan]
    )


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("value", [-np.inf, -2.0, -0.3, 0.0, 1e-30, 0.7, 5.0, np.inf, np.nan])
def test_literals_fold_to_scipys_values(name, value):
    with enable_x64():
        dtype = stretto.numpy.dtype(name)
        for function, expected in ((ops.erf, special.erf), (ops.erfc, special.erfc)):
            program = stretto.make_graph(
                lambda f=function: f(stretto.numpy.asarray(value, dtype))
            )()
            assert not program.equations
            target = expected(np.asarray(value, dtype).astype(np.float64))
            np.testing.assert_allclose(
                np.asarray(program.outputs[0].value, np.float64),
                target.astype(dtype).astype(np.float64),
                rtol=2 * float(stretto.numpy.finfo(dtype).eps),
            )
