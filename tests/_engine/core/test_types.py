"""Array types, promotion against JAX's results, 64 bits, and the warning about them."""

import copy
import itertools
import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.core.config import config, enable_x64
from stretto._engine.core.errors import TypePromotionError
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import (
    DTYPES,
    array_type,
    as_dtype,
    bytes_of,
    canonical_dtype,
    check_ranks,
    default_dtype,
    differ,
    float0,
    has_rows,
    inexact_dtype,
    is_complex,
    is_float0,
    is_inexact,
    is_packed,
    kind_of,
    promote,
    real_dtype,
    scalar_dtype,
    short_name,
)

# jax 0.10.2, 64 bits enabled: dtypes.lattice_result_type of each pair, a star for a weak result,
# a dash where it raises. The columns are the rows' names, in order.
JAX = """
bool bool   i8  i16  i32  i64   u8  u16  u32  u64 bf16  f16  f32  f64  c64 c128   i*   f*   c* e4m3 e5m2   i4   u4
  i8   i8   i8  i16  i32  i64  i16  i32  i64   f* bf16  f16  f32  f64  c64 c128   i8   f*   c* e4m3 e5m2    -    -
 i16  i16  i16  i16  i32  i64  i16  i32  i64   f* bf16  f16  f32  f64  c64 c128  i16   f*   c* e4m3 e5m2    -    -
 i32  i32  i32  i32  i32  i64  i32  i32  i64   f* bf16  f16  f32  f64  c64 c128  i32   f*   c* e4m3 e5m2    -    -
 i64  i64  i64  i64  i64  i64  i64  i64  i64   f* bf16  f16  f32  f64  c64 c128  i64   f*   c* e4m3 e5m2    -    -
  u8   u8  i16  i16  i32  i64   u8  u16  u32  u64 bf16  f16  f32  f64  c64 c128   u8   f*   c* e4m3 e5m2    -    -
 u16  u16  i32  i32  i32  i64  u16  u16  u32  u64 bf16  f16  f32  f64  c64 c128  u16   f*   c* e4m3 e5m2    -    -
 u32  u32  i64  i64  i64  i64  u32  u32  u32  u64 bf16  f16  f32  f64  c64 c128  u32   f*   c* e4m3 e5m2    -    -
 u64  u64   f*   f*   f*   f*  u64  u64  u64  u64 bf16  f16  f32  f64  c64 c128  u64   f*   c* e4m3 e5m2    -    -
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16  f32  f32  f64  c64 c128 bf16 bf16  c64    -    -    -    -
 f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f16  f32  f64  c64 c128  f16  f16  c64    -    -    -    -
 f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  c64 c128  f32  f32  c64    -    -    -    -
 f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64 c128 c128  f64  f64 c128    -    -    -    -
 c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64 c128  c64 c128  c64  c64  c64    -    -    -    -
c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128    -    -    -    -
  i*   i*   i8  i16  i32  i64   u8  u16  u32  u64 bf16  f16  f32  f64  c64 c128   i*   f*   c* e4m3 e5m2   i4   u4
  f*   f*   f*   f*   f*   f*   f*   f*   f*   f* bf16  f16  f32  f64  c64 c128   f*   f*   c* e4m3 e5m2    -    -
  c*   c*   c*   c*   c*   c*   c*   c*   c*   c*  c64  c64  c64 c128  c64 c128   c*   c*   c*    -    -    -    -
e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3 e4m3    -    -    -    -    -    - e4m3 e4m3    - e4m3    -    -    -
e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2 e5m2    -    -    -    -    -    - e5m2 e5m2    -    - e5m2    -    -
  i4   i4    -    -    -    -    -    -    -    -    -    -    -    -    -    -   i4    -    -    -    -   i4    -
  u4   u4    -    -    -    -    -    -    -    -    -    -    -    -    -    -   u4    -    -    -    -    -   u4
"""  # noqa: E501
ROWS = [line.split() for line in JAX.strip().splitlines()]
NAMES = [row[0] for row in ROWS]
TABLE = {(row[0], name): cell for row in ROWS for name, cell in zip(NAMES, row[1:], strict=True)}
NARROW = {
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "i4": "int4",
    "u4": "uint4",
}
WEAK = {"i*": int, "f*": float, "c*": complex}


def given(name):
    """(dtype, weak) of a name in the table."""
    if name in WEAK:
        return scalar_dtype(WEAK[name]), True
    if name in NARROW:
        return np.dtype(getattr(ml_dtypes, NARROW[name])), False
    if name == "bool":
        return np.dtype(bool), False
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}"), False


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("row", NAMES)
def test_promotion_is_jax_s(row, wide):
    with enable_x64(wide):
        for column in NAMES:
            x, y = ((canonical_dtype(d), w) for d, w in map(given, (row, column)))
            want = TABLE[row, column]
            if not wide and {row, column} & {"i64", "u64"} and want != "-":
                continue  # with 32 bits they are other types from the start
            if want == "-":
                with pytest.raises(TypeError, match=r"f: types .* have no implicit common type"):
                    promote([x, y], "f")
            else:
                dtype, weak = given(want)
                assert promote([x, y], "f") == (canonical_dtype(dtype), weak), (row, column)


def test_promotion_is_a_join():
    with enable_x64():
        names = [n for n in NAMES if n not in ("i4", "u4", "e4m3", "e5m2")]
        for a, b, c in itertools.product(names, repeat=3):
            x, y, z = map(given, (a, b, c))
            assert promote([x, y]) == promote([y, x])
            together = promote([x, y, z])
            assert together[0] == promote([promote([x, y]), z])[0] or not together[1]


def test_weak_bools_do_not_exist():
    assert promote([(np.dtype(bool), False), given("i*")]) == (np.dtype(np.int32), True)


def test_strict_promotion():
    with config(numpy_dtype_promotion="strict"):
        assert promote([given("f32"), given("f*")]) == given("f32")
        assert promote([given("i8"), given("i8")]) == given("i8")
        with pytest.raises(
            TypeError, match="add: types float16, float32 differ, and promotion is s"
        ):
            promote([given("f32"), given("f16")], "add")
    assert promote([given("f32"), given("f16")], "add") == given("f32")


STRICT = {  # what weak types become beside others; what is not here is refused, unless it is equal
    "i*": {"i*": "i*", "f*": "f*", "c*": "c*", "i8": "i8", "u4": "u4", "u32": "u32", "i32": "i32",
           "bf16": "bf16", "f16": "f16", "f32": "f32", "c64": "c64"},
    "f*": {"f*": "f*", "c*": "c*", "bf16": "bf16", "f16": "f16", "f32": "f32", "c64": "c64"},
    "c*": {"c*": "c*", "c64": "c64"},
}  # fmt: skip


@pytest.mark.parametrize(
    "a", ["bool", *STRICT, "u4", "i8", "i32", "u32", "bf16", "f16", "f32", "c64"]
)
def test_strict_promotion_of_all_pairs(a):
    with config(numpy_dtype_promotion="strict"):
        for b in ["bool", *STRICT, "u4", "i8", "i32", "u32", "bf16", "f16", "f32", "c64"]:
            want = STRICT.get(a, {}).get(b) or STRICT.get(b, {}).get(a) or (a if a == b else None)
            if want:
                assert promote([given(a), given(b)]) == given(want), (a, b)
            else:
                with pytest.raises(TypePromotionError, match="differ, and promotion is strict"):
                    promote([given(a), given(b)])
        assert promote([given("i*"), given("f*"), given("f16")]) == given("f16")
        with pytest.raises(
            TypePromotionError, match="types int32, weak float32, weak int32 differ"
        ):
            promote([given("i32"), given("f*"), given("i*")])


def test_equal_types_are_one_object():
    x = array_type((2, 3), np.dtype(np.float32))
    assert x is array_type((2, 3), np.dtype("f4"))
    assert x is not array_type((2, 3), np.dtype(np.float32), True)
    assert x.with_shape((3,)) is array_type((3,), x.dtype)
    assert array_type((np.int64(2), 3), x.dtype) is x
    assert copy.deepcopy(x) is x
    assert pickle.loads(pickle.dumps(x)) is x
    assert (x.ndim, x.size, x.kind) == (2, 6, "float")
    assert array_type((), x.dtype).size == 1
    assert array_type((3, 0), x.dtype).size == 0


def test_names():
    f32 = array_type((2, 3), np.dtype(np.float32))
    assert repr(f32) == "float32[2,3]"
    assert f32.short() == "f32[2,3]"
    assert array_type((), np.dtype(np.int32), True).short() == "i32*[]"
    shorts = ("bf16", "f8_e4m3fn", "i4", "u8", "c128", "bool")
    longs = ("bfloat16", "float8_e4m3fn", "int4", "uint8", "complex128", "bool")
    for short, long in zip(shorts, longs, strict=True):
        assert short_name(np.dtype(getattr(ml_dtypes, long, long))) == short


def test_what_is_packed():
    assert {name for name, dtype in DTYPES.items() if is_packed(dtype)} == {
        *("int2", "int4", "uint2", "uint4")
    }


def test_kinds():
    assert [kind_of(given(n)[0]) for n in ("bool", "i4", "u4", "e4m3", "bf16", "c64")] == [
        "bool", "int", "uint", "float", "float", "complex",
    ]  # fmt: skip
    assert is_inexact(given("e5m2")[0])
    assert not is_inexact(float0)
    assert array_type((), float0).kind == "float0"
    assert float0 == np.dtype([("float0", np.void, 0)]) and float0.itemsize == 0  # as JAX has it
    with pytest.raises(
        TypeError, match="dtype object is not one of the numeric types of arrays: bf"
    ):
        kind_of(np.dtype(object))


def test_defaults():
    assert [default_dtype(k).name for k in ("bool", "int", "float", "complex")] == [
        "bool", "int32", "float32", "complex64",
    ]  # fmt: skip
    assert inexact_dtype(np.dtype(np.int8)) == np.float32
    assert inexact_dtype(np.dtype(np.float16)) == np.float16
    with enable_x64():
        assert [default_dtype(k).name for k in ("int", "float", "complex")] == [
            "int64", "float64", "complex128",
        ]  # fmt: skip
        assert inexact_dtype(np.dtype(bool)) == np.float64


@pytest.mark.parametrize("asked", [np.float64, "float64", np.dtype("f8"), "d"])
def test_asking_for_64_bits_warns_and_gives_32(asked):
    with pytest.warns(
        UserWarning, match="float64 was asked for, but 64-bit types are off, so this is float32"
    ):
        assert as_dtype(asked) == np.float32
    with enable_x64():
        assert as_dtype(asked) == np.float64


def test_the_warning_comes_once_a_place():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        for _ in range(3):
            as_dtype(np.int64)  # one place
        as_dtype(np.int64)  # another
    assert len(given) == 2
    assert all(w.filename == __file__ for w in given)


def test_python_s_own_types_mean_the_defaults():
    assert as_dtype(float) == np.float32
    assert as_dtype(int) == np.int32
    assert as_dtype(complex) == np.complex64
    assert as_dtype(bool).kind == "b"
    assert as_dtype("bfloat16") == given("bf16")[0]
    assert as_dtype("int4") == given("i4")[0]


def test_a_size_in_place_of_a_dtype():
    with pytest.raises(
        TypeError, match=r"got 3; a shape is one argument, as in snp\.zeros\(\(2, 3\)\)"
    ):
        as_dtype(3)


def test_canonical_dtype():
    names = ("i64", "u64", "f64", "c128", "f16", "bf16", "bool")
    assert [canonical_dtype(given(n)[0]) for n in names] == [
        given(n)[0] for n in ("i32", "u32", "f32", "c64", "f16", "bf16", "bool")
    ]


def test_types_with_sizes_that_vary():
    n, f32 = size_variable("n", 2, 9), np.dtype(np.float32)
    rows, columns = array_type((n, 3), f32), array_type((3, n), f32)
    assert rows.varies and columns.varies and not array_type((3, 2), f32).varies
    assert rows.shape == (n, 3) and rows.size == 3 * n and rows is array_type((n, 3), f32)
    assert rows.least is array_type((2, 3), f32) and rows.least.least is rows.least
    assert has_rows(rows) and not has_rows(columns)
    assert not has_rows(array_type((2, 3), f32)) and not has_rows(array_type((), f32))


@pytest.mark.parametrize(
    ("name", "bytes", "real", "short", "is_float"),
    [
        ("bool", 6, "bool", "bool", False),
        ("int8", 6, "int8", "i8", False),
        ("uint64", 48, "uint64", "u64", False),
        ("float16", 12, "float16", "f16", True),
        ("bfloat16", 12, "bfloat16", "bf16", True),
        ("float8_e4m3b11fnuz", 6, "float8_e4m3b11fnuz", "f8_e4m3b11fnuz", True),
        ("float4_e2m1fn", 6, "float4_e2m1fn", "f4_e2m1fn", True),
        ("uint2", 6, "uint2", "u2", False),
        ("complex64", 48, "float32", "c64", True),
        ("complex128", 96, "float64", "c128", True),
    ],
)
def test_what_is_known_of_dtypes(name, bytes, real, short, is_float):
    dtype = DTYPES[name]
    assert bytes_of(array_type((2, 3), dtype)) == bytes and short_name(dtype) == short
    assert real_dtype(dtype).name == real and is_complex(dtype) is name.startswith("c")
    assert is_inexact(dtype) is is_float and not is_float0(np.zeros(1, dtype))
    assert inexact_dtype(dtype) == (dtype if is_float else np.float32)
    assert is_float0(np.zeros(1, float0)) and not is_float0(None)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("no such", "data type 'no such' not understood"),
        ("f4,,", "expected a dtype such as 'float32', got 'f4,,'"),
        ("U3", "dtype <U3 is not one of the numeric types of arrays"),
        (True, "a shape is one argument"),
        (object(), "data type"),
    ],
)
def test_what_is_no_dtype(asked, message):
    with pytest.raises(TypeError, match=message):
        as_dtype(asked)


def test_a_dtype_of_pytorch_is_named():
    class Named:
        def __repr__(self):
            return "torch.float32"

    with pytest.raises(TypeError, match=r"expected a dtype, got torch\.float32; use snp\.float32"):
        as_dtype(Named())


@pytest.mark.parametrize(
    ("shapes", "do_differ"),
    [
        ([(2, 3), (3,)], True),
        ([(2, 3), (1, 3)], False),
        ([(2, 3), ()], False),
        ([(), ()], False),
        ([(3,)], False),
        ([(), (3,), (2, 3)], True),
    ],
)
def test_shapes_that_differ_in_rank(shapes, do_differ):
    assert not differ(*shapes)
    check_ranks("add", *shapes)
    with config(numpy_rank_promotion="raise"):
        assert differ(*shapes) is do_differ
        if do_differ:
            with pytest.raises(ValueError, match=r"add: shapes .* differ in rank, and config"):
                check_ranks("add", *shapes)
        else:
            check_ranks("add", *shapes)
    with config(numpy_rank_promotion="warn"):
        if do_differ:
            with pytest.warns(UserWarning, match="is 'warn'; give them one rank first"):
                check_ranks("add", *shapes)
