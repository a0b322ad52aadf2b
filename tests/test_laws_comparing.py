"""Laws compare results to rounding; and the options that code is compiled with."""

import os
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
from stretto.laws import FULLY, as_wide, check_close, tolerance_of

ONE = np.ones(2, np.float32)


def test_rounding_passes():
    check_close([ONE], [ONE * (1 + 8 * np.finfo(np.float32).eps)], "here")
    check_close(ONE.astype(np.float16), ONE.astype(np.float16), "here")


@pytest.mark.parametrize(
    "got, message",
    [
        ([ONE, ONE], "here: 2 results, expected 1"),
        ([ONE[:1]], r"here: shapes \(1,\) and \(2,\)"),
        ([ONE.astype(np.float64)], "here: dtypes float64 and float32"),
        ([ONE * 1.001], "(?s)here.*Mismatched elements"),
    ],
)
def test_other_results_do_not(got, message):
    with pytest.raises(AssertionError, match=message):
        check_close(got, [ONE], "here")


def test_a_factor_widens_what_passes():
    with pytest.raises(AssertionError):
        check_close(ONE * 1.001, ONE, "here")
    check_close(ONE * 1.001, ONE, "here", factor=1000)


def test_integers_must_be_equal():
    assert tolerance_of(np.dtype(np.int32)) == 0
    with pytest.raises(AssertionError):
        check_close(np.arange(3), np.arange(3) + 1, "here")


def test_as_wide_takes_64_bits_for_each_real_part():
    assert as_wide(ONE).dtype == np.float64
    assert as_wide(ONE.astype(np.complex64)).dtype == np.complex128


ROUNDED = """
import numpy as np, stretto as st
x = np.linspace(-3, 3, 3000, dtype=np.float32).reshape(3, 1000)
f = lambda x: st.numpy.tanh(x * x[0] + x[1]) / (1 + st.numpy.exp(-x)).prod(0)
"""


def test_fully_compiled_code_is_what_users_get():
    program = f"{ROUNDED}print(np.asarray(st.jit(f)(x)).tobytes().hex())"
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    got = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    names: dict = {}
    exec(ROUNDED, names)
    f, x = names["f"], names["x"]
    fully = np.asarray(st.jit(f, compiler_options=FULLY)(x)).tobytes()
    assert fully.hex() == got.stdout.decode().strip()
    if FULLY:
        assert np.asarray(st.jit(f)(x)).tobytes() != fully
