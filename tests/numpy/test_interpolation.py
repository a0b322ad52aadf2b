"""Interpolation: the line that goes on, complex values, slopes, and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

XP, FP = np.array([1.0, 2.0, 3.0], np.float32), np.array([10.0, 20.0, 40.0], np.float32)


def test_the_line_goes_on():
    fun = lambda x: snp.interp(x, XP, FP, left="extrapolate", right="extrapolate")
    for out in (fun(snp.array([0.0, 9.0])), st.jit(fun)(np.float32([0, 9]))):
        assert out.tolist() == [0, 160]


def test_complex_values_and_one_point():
    out = snp.interp(snp.array([0.0, 1.5, np.nan]), XP, snp.array([1 + 2j, 2 + 0j, 3j]), left=5j)
    np.testing.assert_array_equal(out, np.complex64([5j, 1.5 + 1j, np.nan]))
    assert snp.interp(7.0, snp.ones(1), snp.array([3.0])) == 3
    assert snp.interp(2.0, snp.array([1.0, 2.0, 2.0, 3.0]), snp.array([1.0, 2.0, 4.0, 5.0])) == 4


def test_slopes():
    slope = st.grad(lambda x: snp.interp(x, XP, FP))
    assert [float(slope(x)) for x in (0.0, 1.5, 2.0, 9.0)] == [0, 10, 20, 0]
    assert st.grad(lambda fp: snp.interp(1.25, XP, fp))(FP).tolist() == [0.75, 0.25, 0]
    assert st.grad(lambda xp: snp.interp(1.25, xp, FP))(XP).tolist() == [-7.5, -2.5, 0]


def test_messages():
    cases = [
        (lambda: snp.interp(0.0, XP, FP[:2]), ValueError, "xp and fp must have one shape"),
        (lambda: snp.interp(0.0, XP, FP, left="up"), ValueError, "left must be a number or 'extr"),
        (lambda: snp.interp(1j, XP, FP), TypeError, "x and xp must be real"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


def test_between_infinities():
    x, xp = np.float32([-1, 0, 0.25, 1, 1.5, 2.5, 4]), np.float32([0, 1, 2, 3])
    for fp in ([np.inf] * 4, [-np.inf] * 4, [-np.inf, -2.5, 1, 2], [1, 2, np.inf, np.inf]):
        values = np.float32(fp)
        with np.errstate(invalid="ignore"):
            want = np.interp(x, xp, values)
        with st.config(interpret_small=False):
            compiled = st.jit(snp.interp)(x, xp, values)
        for out in (snp.interp(x, xp, values), compiled):
            np.testing.assert_array_equal(out, want)
