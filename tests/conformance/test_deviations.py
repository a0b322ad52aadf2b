"""What `docs/conformance.md` says of deviations and choices is so, and the page is up to date."""

import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError
from tests.conformance import deviations


def assignment():
    x = snp.ones(2)
    with pytest.raises(TypeError, match=r"x = x\.at\[0\]\.set\(y\)"):
        x[0] = 2
    y = x
    y += 1
    assert x.tolist() == [1, 1]


def thirty_two_bits():
    info = snp.__array_namespace_info__()
    wide = {"int64", "uint64", "float64", "complex128"}
    assert not wide & set(info.dtypes())
    with pytest.warns(UserWarning, match="enable_x64"):
        assert snp.asarray(1, dtype=snp.int64).dtype == snp.int32
    assert snp.ones(1).dtype == snp.float32
    with st.enable_x64():
        assert wide <= set(info.dtypes())
        assert snp.asarray(1, dtype=snp.int64).dtype == snp.int64


def traced_shapes():
    x = snp.asarray([0, 1, 2])
    refused = (snp.nonzero, snp.unique_values, lambda v: snp.repeat(v, v), lambda v: v[v > 0])
    for function in refused:
        function(x)
        with pytest.raises((TracedValueError, IndexError)):
            st.jit(function)(x)
    assert st.jit(lambda v: snp.nonzero(v, size=2)[0])(x).tolist() == [1, 2]
    assert st.jit(lambda v: snp.unique_values(v, size=3))(x).tolist() == [0, 1, 2]
    repeated = st.jit(lambda v: snp.repeat(v, v, total_repeat_length=3))(x)
    assert repeated.tolist() == [1, 2, 2]


def transpose():
    assert snp.ones((2, 3, 4)).T.shape == (4, 3, 2)
    assert snp.ones(3).T.shape == (3,)


def sqrt():
    assert complex(snp.sqrt(snp.asarray(complex(-math.inf, 1)))) == complex(0, math.inf)


def out_of_bounds():
    x = snp.asarray([1.0, 2.0])
    assert x[5] == 2
    assert snp.isnan(x.at[5].get(mode="fill"))
    with pytest.raises(IndexError):
        x.at[5].get(mode="raise")


def mixed_kinds():
    assert snp.result_type(snp.int32, snp.float16) == snp.float16


def floor_divide():
    assert snp.asarray(1.0) // -math.inf == -1
    assert snp.isnan(snp.asarray(math.inf) // 1.0)


def from_dlpack():
    y = np.ones(2, np.float32)
    x = snp.from_dlpack(y)
    y[0] = 5
    assert x.tolist() == [1, 1]
    assert not np.from_dlpack(x).flags.writeable


def asarray():
    with pytest.raises(ValueError, match="copy"):
        snp.asarray(np.ones(2, np.float32), copy=False)


def subnormal():
    x = snp.asarray(1e-40)
    assert x * 1.5 > 0
    assert st.jit(lambda v: v * 1.5)(x) == 0
    assert np.asarray(st.jit(snp.nextafter)(snp.asarray(0.0), snp.asarray(1.0))) > 0


def max_dimensions():
    assert snp.__array_namespace_info__().capabilities()["max dimensions"] == 64


def real_results():
    x = snp.ones(2)
    assert snp.real(x) is x
    assert snp.conj(x) is x


SHOWN = {
    "assignment": assignment,
    "32 bits": thirty_two_bits,
    "traced shapes": traced_shapes,
    "transpose": transpose,
    "sqrt": sqrt,
    "out of bounds": out_of_bounds,
    "mixed kinds": mixed_kinds,
    "floor_divide": floor_divide,
    "from_dlpack": from_dlpack,
    "asarray": asarray,
    "subnormal": subnormal,
    "max dimensions": max_dimensions,
    "real results": real_results,
}


@pytest.mark.parametrize("key", [*deviations.DEVIATIONS, *deviations.ERRATA, *deviations.CHOICES])
def test_it_is_so(key):
    SHOWN[key]()
