from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import nn as jax_nn

NAMES = [
    "int4",
    "uint4",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
    "float8_e4m3fn",
    "float8_e5m2",
    "bool_",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_make_arrays_and_compare(name):
    scalar = getattr(snp, name)
    x = scalar(1)
    assert x.dtype == scalar
    assert scalar == x.dtype
    assert not x.weak_type
    assert np.dtype(scalar) == x.dtype
    assert snp.zeros(2, scalar).dtype == x.dtype
    assert snp.array([1, 0]).astype(scalar).dtype == scalar
    assert pickle.loads(pickle.dumps(scalar)) == scalar
    assert hash(scalar) == hash(x.dtype)


def test_names_differ():
    assert snp.float32 != snp.float16
    assert snp.float32 != np.int32
    assert snp.float32 != "no dtype"
    assert snp.float32 is not None
    assert snp.float32 == np.float32
    assert snp.float32 == "float32"


def test_scalars_convert():
    assert snp.float32([1, 2]).tolist() == [1, 2]
    assert snp.int32(2.7).tolist() == 2
    assert float(st.grad(lambda x: snp.float32(x) ** 2)(3.0)) == 6


@pytest.mark.parametrize(
    ("dtype", "kind", "is_"),
    [
        ("float32", "floating", True),
        ("bfloat16", "floating", True),
        ("bfloat16", "inexact", True),
        ("float8_e5m2", "number", True),
        ("int4", "signedinteger", True),
        ("int4", "integer", True),
        ("uint8", "unsignedinteger", True),
        ("uint8", "signedinteger", False),
        ("complex64", "complexfloating", True),
        ("complex64", "floating", False),
        ("bool_", "number", False),
        ("bool_", "generic", True),
        ("int32", "inexact", False),
    ],
)
def test_issubdtype(dtype, kind, is_):
    assert snp.issubdtype(getattr(snp, dtype), getattr(snp, kind)) is is_
    assert snp.issubdtype(snp.ones(1, getattr(snp, dtype)).dtype, getattr(snp, kind)) is is_


def test_issubdtype_of_dtypes_and_kinds():
    assert snp.issubdtype(snp.float32, np.float32)
    assert not snp.issubdtype(snp.float32, snp.float16)
    assert snp.issubdtype(np.floating, np.inexact)
    assert not snp.issubdtype(np.floating, np.integer)


def test_isdtype():
    assert snp.isdtype(snp.int8, "signed integer")
    assert snp.isdtype(np.dtype("uint8"), ("bool", "integral"))
    assert not snp.isdtype(snp.bfloat16, "integral")
    assert snp.isdtype(snp.bfloat16, "real floating")
    assert snp.isdtype(snp.float32, snp.float32)
    with pytest.raises(ValueError, match="kind"):
        snp.isdtype(snp.float32, "big")


@pytest.mark.parametrize(
    ("args", "want"),
    [
        ((1, snp.int8), "int8"),
        ((1.0, snp.int8), "float32"),
        ((snp.uint8, snp.int8), "int16"),
        ((snp.bfloat16, snp.float16), "float32"),
        ((snp.int32, snp.float16), "float16"),
        ((True, 1), "int32"),
        ((np.float64(1), snp.float16), "float32"),
        ((bool, "int8"), "int8"),
    ],
)
def test_result_type(args, want):
    assert snp.result_type(*args) == np.dtype(want)


def test_promote_types_and_can_cast():
    assert snp.promote_types(snp.int8, snp.uint8) == np.int16
    assert snp.can_cast(snp.int8, snp.int16)
    assert not snp.can_cast(snp.float32, snp.int32)
    with pytest.raises(TypeError, match="no implicit common type"):
        snp.promote_types(snp.float8_e5m2, snp.float8_e4m3fn)


def test_every_name_is_exported():
    for name in (
        "dtype",
        "number",
        "floating",
        "integer",
        "inexact",
        "complexfloating",
        "pi",
        "e",
        "inf",
        "nan",
        "newaxis",
        "ndarray",
    ):
        assert hasattr(snp, name)
    assert snp.newaxis is None
    assert isinstance(snp.ones(1), snp.ndarray)


def test_numpys_other_names():
    for name in ("byte", "short", "intc", "int_", "intp", "ubyte", "uintc", "uint", "half",
                 "single", "double", "csingle", "cdouble", "longlong"):  # fmt: skip
        assert getattr(snp, name) == getattr(np, name)
    assert snp.issubdtype(np.str_, snp.character)
    assert snp.issubdtype(snp.character, snp.flexible)
    assert snp.issubdtype(snp.object_, snp.generic)
    assert not snp.issubdtype(snp.float32, snp.flexible)
    assert snp.common_type(snp.ones(2, int), snp.ones(2, "float16")) == np.float16


def test_four_bit_floats():
    x = snp.array([0.5, 3.3, -100.0], snp.float4_e2m1fn)
    for f in (lambda x: x.astype(float) * 2, st.jit(lambda x: x.astype(float) * 2)):
        np.testing.assert_array_equal(f(x), [1, 6, -12])
    assert snp.issubdtype(x.dtype, snp.floating)


@pytest.mark.parametrize(
    ("casting", "narrow", "kind", "wide"),
    [
        ("no", False, False, False),
        ("safe", False, False, True),
        ("same_kind", True, False, True),
        ("unsafe", True, True, True),
    ],
)
def test_casting(casting, narrow, kind, wide):
    assert snp.can_cast("float32", "float16", casting) is narrow
    assert snp.can_cast("float32", "int32", casting) is kind
    assert snp.can_cast("int8", "int16", casting) is wide
    assert snp.can_cast("int8", "int8", casting)
    with pytest.raises(ValueError, match="casting must be"):
        snp.can_cast("int8", "int8", "maybe")


def test_no_dtype_is_the_default():
    """None, given by name, is what is left out."""
    assert snp.indices((2,), dtype=None).dtype == snp.int32
    assert jax_nn.one_hot(snp.array(1), 2, dtype=None).dtype == snp.float32
    assert snp.fromfunction(lambda i: i, (2,), dtype=None).dtype == snp.float32
    assert snp.eye(2, dtype=None).dtype == snp.identity(2, dtype=None).dtype == snp.float32
    assert snp.gradient(snp.arange(4.0), edge_order=None).tolist() == [1, 1, 1, 1]
    with st.enable_x64():
        assert snp.fromfunction(lambda i: i, (2,), dtype=None).dtype == snp.float64


def test_arguments_for_several_devices_take_shardings():
    x = snp.arange(3)
    assert snp.bincount(x, out_sharding=None).tolist() == [1, 1, 1]
    assert float(snp.percentile(x, 50, out_sharding=None)) == 1
    for f in (snp.bincount, lambda x, **split: snp.percentile(x, 50, **split)):
        with pytest.raises(TypeError, match="out_sharding must be a sharding"):
            f(x, out_sharding="split")


NO_DTYPES = ["a,,", "", ",", "foo", "(2,)f4", "f4,f4", 1, None, (), [], {}, set(), object(), object,
             ..., slice(1), "x" * 999, np.float32(1), lambda x: x]  # fmt: skip


@pytest.mark.parametrize("name", ["bool_", "int4", "int64", "float8_e5m2", "float32", "complex64"])
def test_a_dtype_equals_no_other_thing(name):
    dtype = getattr(snp, name)
    for other in NO_DTYPES:
        assert (dtype == other) is False
        assert (dtype != other) is True
    assert dtype not in NO_DTYPES
    for same in (dtype.dtype, dtype.dtype.type, dtype.dtype.name, getattr(snp, name)):
        assert (dtype == same) is True
        assert (dtype != same) is False
        assert dtype in [None, same]
    assert {dtype: 1}[dtype.dtype] == {dtype.dtype: 1}[dtype] == 1


@pytest.mark.parametrize("text", ["a,,", "foo", "f4,f4"])
def test_texts_that_name_no_dtype_are_refused(text):
    for use in (
        lambda: snp.zeros(2, text),
        lambda: snp.ones(2).astype(text),
        lambda: snp.result_type(text),
        lambda: snp.can_cast(text, "float32"),
        lambda: snp.isdtype(text, "numeric"),
    ):
        with pytest.raises(TypeError, match=r"dtype|data type"):
            use()


def test_a_dtype_is_a_class_that_makes_arrays():
    for name in ("float32", "bool_", "int4", "bfloat16"):
        dtype = getattr(snp, name)
        assert isinstance(dtype, type) and isinstance(dtype, snp.ScalarType)
        assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype
        assert np.dtype(dtype) == np.ones(1, dtype).dtype == snp.ones(1, dtype).dtype == dtype
        made = dtype(1)
        assert isinstance(made, snp.ndarray) and not isinstance(made, dtype)
    assert repr(snp.float32) == "stretto.numpy.float32" and snp.float32.__name__ == "float32"
    assert isinstance(np.float32(1), snp.float32) and not isinstance(np.float64(1), snp.float32)
