"""Views: NumPy's bytes in every pair of dtypes, eagerly and compiled; and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

KINDS = ["int8", "uint16", "int32", "float32", "complex64", "bool"]


@pytest.mark.parametrize("kind", KINDS)
def test_views(kind):
    x = (np.random.default_rng(0).normal(size=(3, 8)) * 3).astype(kind)
    view = lambda x: [x.view(other) for other in KINDS[:-1]]
    for outs in (view(snp.array(x)), st.jit(view)(x)):
        for other, out in zip(KINDS, outs, strict=False):
            wanted = x.view(other)
            assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype)
            if not np.isnan(wanted).any():
                assert out.tobytes() == wanted.tobytes()
    swapped = snp.array(x).byteswap()
    if kind not in ("float32", "complex64"):  # where NaN may change its bits
        assert swapped.tobytes() == x.byteswap().tobytes()
    again = np.asarray(swapped.byteswap())
    np.testing.assert_array_equal(again, x)


def test_single_elements_and_bytes(tmp_path):
    assert snp.array([True, False]).view(snp.int8).tolist() == [1, 0]
    assert snp.array(1.0).view(snp.int32) == 1065353216
    assert snp.array([0, 1, 2], snp.int8).view(bool).tolist() == [False, True, True]
    x = snp.array([[1, 2], [3, 4]], snp.int8)
    assert x.view() is x and x.tobytes("F") == bytes([1, 3, 2, 4])
    x.tofile(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == bytes([1, 2, 3, 4])


def test_messages():
    cases = [
        (lambda: snp.ones(3, snp.int8).view(snp.int32), ValueError, "no whole number of elements"),
        (lambda: snp.array(1.0).view(snp.int8), ValueError, "no whole number of elements"),
        (lambda: snp.ones(3).view(-1), TypeError, r"got -1; for a shape use x\.reshape\(-1\)$"),
        (lambda: snp.ones(6).view(2, 3), TypeError, r"got 2; for a shape use x\.reshape\(2, 3\)$"),
        (lambda: snp.ones(6).view((2, 3)), TypeError, r"use x\.reshape\(\(2, 3\)\)$"),
        (lambda: snp.ones(6).view(1, 2, 3, 1), TypeError, r"use x\.reshape\(1, 2, 3, 1\)$"),
        (lambda: snp.ones(3).byteswap(True), TypeError, "inplace=True cannot be"),
        (lambda: st.jit(lambda x: x.tobytes())(snp.ones(3)), st.errors.TracedValueError, "traced"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()
