"""The parts of complex numbers: the laws, special values, NumPy."""

import numpy as np
import pytest

from stretto import numpy as snp
from stretto import vjp
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops import complex_parts as ops
from stretto.laws import c64, c128, check_special, f32, f64, law, special_pairs, special_values

LAWS = [
    *(
        law(p, f, t(2, 3))
        for p, f in {ops.Real: ops.real, ops.Imag: ops.imag, ops.Conj: ops.conj}.items()
        for t in (c64, c128)
    ),
    *(law(ops.Complex, ops.complex_, t(2, 3), t(2, 3)) for t in (f32, f64)),
    law(ops.Conj, ops.conj, c64()),
    law(ops.Real, ops.real, c64(2, 0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_special_complex(name):
    part = np.zeros(0, name).real.dtype
    x, y = special_pairs(part)
    whole = np.empty(x.shape, name)
    whole.real, whole.imag = x, y  # with infinities, NaN and negative zeros
    functions = {"real": ops.real, "imag": ops.imag, "conj": ops.conj}
    check_special(functions, whole)
    check_special(functions, special_values(name))
    check_special({"complex": ops.complex_}, x, y)


def test_real_arrays():
    x = as_value(np.array([1.0, 2.0], np.float32))
    assert ops.conj(x) is x and ops.real(x) is x
    np.testing.assert_array_equal(ops.imag(x), [0, 0])
    assert ops.imag(x).type is x.type


def test_putting_parts_together():
    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(ops.complex_(x, -x), x - 1j * x)
    assert ops.complex_(x, 2).dtype == np.complex64
    with pytest.raises(TypeError, match="complex: expected float32 or float64 parts, got bfloat16"):
        ops.complex_(snp.ones(2, "bfloat16"), snp.ones(2, "bfloat16"))


def test_cotangents_pair_without_conjugation():
    z, one = np.complex64(1 + 2j), np.float32(1)
    pull = lambda f, ct: complex(vjp(f, z)[1](ct)[0])
    assert pull(ops.real, one) == 1
    assert pull(ops.imag, one) == -1j  # Im v = Re(-i v)
    assert pull(ops.conj, np.complex64(3 + 4j)) == 3 - 4j
