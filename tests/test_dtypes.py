"""Dtypes under JAX's names."""

import ml_dtypes
import numpy as np
import pytest

import stretto.numpy as snp
from stretto import dtypes, random
from stretto._engine.core.config import config


def test_kinds():
    key = random.key(0).dtype
    assert dtypes.issubdtype(key, dtypes.prng_key)
    assert dtypes.issubdtype(key, dtypes.extended)
    assert dtypes.issubdtype(key, key)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert dtypes.issubdtype(dtypes.prng_key, np.generic)
    assert dtypes.issubdtype("bfloat16", np.floating)
    for other in (np.floating, np.float32, random.key_dtype("rbg")):
        assert not dtypes.issubdtype(key, other)
    for kind in (dtypes.extended, dtypes.prng_key, key):
        assert not dtypes.issubdtype("float32", kind)


def test_widths():
    sizes = {"float32": 32, "int4": 4, bool: 8, ml_dtypes.int2: 2, snp.bfloat16: 16, "int64": 64}
    assert {dtype: dtypes.itemsize_bits(dtype) for dtype in sizes} == sizes


def test_canonical_dtypes():
    assert dtypes.canonicalize_dtype("float64") == dtypes.canonicalize_dtype(float) == np.float32
    with config(enable_x64=True):
        assert dtypes.canonicalize_dtype(float) == np.float64
    key = random.key(0).dtype
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(TypeError, match="expected a dtype of numbers, got key<fry>"):
        dtypes.canonicalize_dtype(key)


def test_result_types():
    flagged = lambda *xs: dtypes.result_type(*xs, return_weak_type_flag=True)
    assert flagged(1, 2.0) == (np.float32, True)
    assert flagged(float, np.int8) == (np.float32, False)
    assert flagged(np.ones(2, np.float16), 2.0) == (np.float16, False)
    assert flagged(snp.asarray(1.5), 2) == (np.float32, True)
    with pytest.raises(dtypes.TypePromotionError, match="have no implicit common type"):
        dtypes.result_type("float8_e5m2", "float32")
    assert issubclass(dtypes.TypePromotionError, ValueError)


def test_scalar_types():
    for x, kind in ((True, bool), (np.uint8(3), int), (snp.ones(2), float), (1j, complex)):
        assert dtypes.scalar_type_of(x) is kind


NARROW = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float8_e5m2": 8}


@pytest.mark.parametrize("name", NARROW)
def test_bits_of_narrow_numbers(name):
    for given in (name, getattr(snp, name), getattr(ml_dtypes, name), getattr(snp, name).dtype):
        assert dtypes.itemsize_bits(given) == NARROW[name]


def test_numpy_classes_and_arrays_name_dtypes():
    assert dtypes.canonicalize_dtype(np.int64) == np.int32
    assert dtypes.canonicalize_dtype(np.zeros(2)) == np.float32
    assert dtypes.canonicalize_dtype("<f8") == dtypes.canonicalize_dtype("d") == np.float32
    assert dtypes.itemsize_bits(np.float32) == 32
    assert dtypes.itemsize_bits(np.bool_) == 8
    assert dtypes.itemsize_bits(np.complex128) == 128
    assert dtypes.itemsize_bits(np.float16(1)) == 16
    with pytest.raises(TypeError, match="expected a dtype such as 'float32', got 'a,,'"):
        dtypes.itemsize_bits("a,,")
