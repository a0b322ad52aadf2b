from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

F = np.array([[-2.5, -1.2, -0.0], [0.5, 1.5, 3.7]], np.float32)
WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30], np.float32)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint", "round"])
def test_whole_numbers(agree, name):
    agree(name, F, dtype="float32")
    agree(name, WILD, dtype="float32")
    agree(name, np.array([3, -4], np.int32))
    assert float(st.grad(getattr(snp, name))(1.2)) == 0


def test_fix_is_trunc():  # NumPy 2.5 deprecates its own
    for x in (F, WILD, np.array([3, -4], np.int32)):
        fixed, want = snp.fix(x), snp.trunc(x)
        assert fixed.dtype == want.dtype
        np.testing.assert_array_equal(fixed, want)


@pytest.mark.parametrize("decimals", [0, 1, 3, -1, -2])
def test_round(agree, decimals):
    agree("round", np.array([1.2345, -2.5, 150.0, 155.55], np.float32), decimals, dtype="float32")
    agree("round", np.array([15, 25, 149, -151], np.int32), decimals, dtype="int32")


def test_round_complex_and_half(agree):
    agree("round", np.array([1.5 + 2.5j], np.complex64))
    assert snp.round(snp.array([1.26], snp.float16), 1).dtype == snp.float16
    assert round(snp.array([1.26]), 1).tolist() == pytest.approx([1.3])


def test_there_is_no_out():
    with pytest.raises(NotImplementedError, match="round: arrays are immutable"):
        snp.round(snp.array([1.5]), out=snp.zeros(1))


def test_around_is_round():
    assert snp.around is snp.round
