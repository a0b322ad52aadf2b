"""Functions that compute in float32 for narrower floats."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.narrow import rounded_once

SEEN = []


@rounded_once
def doubled(x, *others, scale=1.0, dtype=None):
    SEEN.append([str(snp.asarray(y).dtype) for y in (x, *others)])
    if snp.asarray(x).ndim > 1:
        raise ValueError(f"doubled: expected a vector, got {snp.asarray(x).type}")
    out = x * 2 * scale
    return (out, {"count": snp.size(x)}) if dtype is None else out.astype(dtype)


def seen(call):
    SEEN.clear()
    out = call()
    return SEEN[-1], out


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn"])
def test_narrow_floats_are_seen_in_float32(dtype):
    x = snp.ones(3, dtype)
    inside, (out, rest) = seen(lambda: doubled(x, np.arange(3, dtype="int32"), scale=x[0]))
    assert inside == ["float32", "int32"]
    assert out.dtype == dtype and rest == {"count": 3}
    np.testing.assert_array_equal(out.astype("float32"), 2)
    inside, (out, _) = seen(lambda: st.jit(doubled)(x))
    assert inside == ["float32"] and out.dtype == dtype
    slope = st.grad(lambda x: doubled(x)[0].sum())(x)
    assert slope.dtype == dtype


def test_other_calls_are_as_they_were():
    half = np.ones(3, np.float16)
    for other in (np.ones(3, np.float32), np.ones(3, ml_dtypes.bfloat16), np.ones(3, np.complex64)):
        inside, _ = seen(lambda other=other: doubled(half, other))
        assert inside == ["float16", str(other.dtype)]
    assert seen(lambda: doubled(np.ones(3, np.float32)))[0] == ["float32"]
    assert seen(lambda: doubled(half, dtype="float32"))[1].dtype == np.float32
    assert seen(lambda: doubled(2.0))[1][0] == 4.0


def test_arrays_in_lists_count():
    @rounded_once
    def total(several):
        return sum(several)

    half = snp.full(2, 40_000, dtype="float16")
    np.testing.assert_array_equal(total([half, half, -half]), half)
    np.testing.assert_array_equal(total((half, half, -half)), half)


def test_errors_speak_of_what_was_given():
    with pytest.raises(ValueError, match=r"expected a vector, got float16\[2,2\]"):
        doubled(np.ones((2, 2), np.float16))
