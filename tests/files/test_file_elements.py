"""Leaves as arrays of the format, and back."""

import enum

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import TracedValueError
from stretto.files.file_elements import kind_of_leaf, restored, stored, true_type
from stretto.files.names import Damaged

CODES = {
    "bool": "BOOL",
    "bfloat16": "BF16",
    "complex64": "C64",
    "complex128": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float4_e2m1fn": "U8",
    "float8_e3m4": "U8",
    "float8_e4m3": "U8",
    "float8_e4m3b11fnuz": "U8",
    "int2": "I8",
    "int4": "I8",
    "uint2": "U8",
    "uint4": "U8",
    **{f"int{n}": f"I{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"U{n}" for n in (8, 16, 32, 64)},
    **{f"float{n}": f"F{n}" for n in (16, 32, 64)},
}


def back(leaf):
    """The leaf, stored and restored."""
    array, kind, word = stored(leaf, "tree", "save")
    name = array.dtype.name
    type = true_type("x", CODES[name], array.shape, word)
    lost: list[str] = []
    made = restored(np.frombuffer(array.tobytes(), np.uint8), type, kind, "x", lost)
    assert lost == []
    return made


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)], ids=str)
def test_every_dtype(name, shape):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values = np.arange(int(np.prod(shape))).reshape(shape) % 2
    array = values.astype(np.int8).astype(dtype)
    again = back(array)
    assert again.dtype == dtype and again.shape == shape
    assert again.tobytes() == array.tobytes()
    with st.enable_x64():
        ours = back(snp.array(array))
        assert isinstance(ours, st.Array) and ours.dtype == dtype and not ours.weak_type
        assert np.asarray(ours).tobytes() == array.tobytes()


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (True, True),
        (5, 5),
        (-(2**63), -(2**63)),
        (2**64 - 1, 2**64 - 1),
        (0.1, 0.1),
        (float("-inf"), float("-inf")),
        (1 + 0.1j, 1 + 0.1j),
        (Level.HIGH, 3),
    ],
    ids=str,
)
def test_numbers_come_back_exactly(leaf, expected):
    made = back(leaf)
    assert made == expected and type(made) is type(expected)


def test_arrays_keep_what_they_are():
    weak = back(snp.asarray(2.0))
    assert weak.weak_type and weak.dtype == np.float32
    assert type(back(np.float64(0.1))) is np.float64
    key = st.random.PRNGKey(3)
    assert (np.asarray(back(key)) == np.asarray(key)).all() and back(key).dtype == np.uint32
    turned = np.arange(6.0).reshape(2, 3).T[:, ::-1]
    np.testing.assert_array_equal(back(turned), turned)
    assert kind_of_leaf(snp.ones(2)) is None and kind_of_leaf(np.ones(2)) == "numpy"


@pytest.mark.parametrize(
    ("leaf", "error", "words"),
    [
        ("adam", TypeError, r"tree must be an array or a number, and is a str; .*metadata="),
        (np.array(["a"]), TypeError, "an array of dtype <U1"),
        (np.array([None]), TypeError, "an array of dtype object"),
        (2**64, OverflowError, "tree is an integer of more than 64 bits"),
        (-(2**63) - 1, OverflowError, "more than 64 bits"),
        (len, TypeError, "builtin_function"),
    ],
    ids=["text", "texts", "objects", "large", "small", "function"],
)
def test_what_is_no_array(leaf, error, words):
    with pytest.raises(error, match=words):
        stored(leaf, "tree", "save")


def test_traced_values_have_no_elements():
    def f(x):
        return stored(x, "tree['x']", "save")

    for transformed in (st.jit(f), st.vmap(f), lambda x: st.jvp(f, (x,), (x,))):
        with pytest.raises(TracedValueError, match=r"save: tree\['x'\] is traced .* outside"):
            transformed(snp.ones(2))


def test_64_bits_become_32_while_they_are_off():
    type = true_type("x", "I64", (2,), None)
    raw = np.array([1, -5]).view(np.uint8)
    made = restored(raw, type, None, "x", [])
    assert made.dtype == np.int32 and made.tolist() == [1, -5]
    with pytest.raises(OverflowError, match=r"x is int64 in the file.*do not fit in int32"):
        restored(np.array([1, 2**40]).view(np.uint8), type, None, "x", [])
    lost: list[str] = []
    for value, name in ((0.5, "exact"), (0.1, "rounded"), (np.nan, "nan"), (1e300, "large")):
        raw = np.array([value]).view(np.uint8)
        made = restored(raw, true_type(name, "F64", (1,), None), None, name, lost)
        assert made.dtype == np.float32
    assert lost == ["rounded", "large"]
    with st.enable_x64():
        made = restored(raw, true_type("x", "F64", (1,), None), None, "x", lost)
        assert made.dtype == np.float64 and made.tolist() == [1e300] and len(lost) == 2


@pytest.mark.parametrize(
    ("code", "shape", "word", "kind", "raw", "words"),
    [
        ("F4", (2,), None, None, [0], "x is of type F4, which Stretto has no dtype for"),
        ("F32", (1,), "int4", None, [0] * 4, "says that x is int4, and it is F32"),
        ("F32", (1,), "float32", None, [0] * 4, "says that x is float32, and it is F32"),
        ("F64", (3,), "complex128", None, [0] * 24, "says that x is complex128, and it is F64"),
        ("F64", (), "complex128", None, [0] * 8, "says that x is complex128"),
        ("I64", (1,), None, "int", [0] * 8, r"says that x is one int, and it is int64\[1\]"),
        ("F64", (), None, "int", [0] * 8, "says that x is one int"),
        ("I64", (), None, "seven", [0] * 8, "'seven', which is unknown"),
        ("BOOL", (2,), None, None, [1, 2], "neither 0 nor 1"),
    ],
    ids=range(9),
)
def test_descriptions_that_do_not_fit_the_array(code, shape, word, kind, raw, words):
    with pytest.raises(Damaged, match=words):
        type = true_type("x", code, shape, word)
        restored(np.array(raw, np.uint8), type, kind, "x", [])
