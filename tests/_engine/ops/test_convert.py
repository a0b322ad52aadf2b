"""Conversion between all dtypes: the laws, and special values of each in each other."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import stretto.numpy as snp
from stretto import grad, jit, vjp
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops import convert as conversion
from stretto._engine.ops.convert import (
    ConvertElementType,
    as_inexact,
    convert,
    convert_element_type,
    dtype_argument,
    rounded_once,
    value_in,
)
from stretto.laws import (
    b1,
    bf16,
    c64,
    c128,
    check_special,
    f16,
    f32,
    f64,
    i8,
    i32,
    law,
    special_values,
    u32,
)

NAMES = [
    "bool",
    "int2",
    "uint2",
    "int4",
    "uint4",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in NAMES}


def to(name):
    return lambda x: convert(x, DTYPES[name])


LAWS = [
    *(
        law(ConvertElementType, to(name), t(2, 3))
        for t, name in [
            (f64, "complex128"),
            (c128, "float64"),
            (i32, "float32"),
            (b1, "int32"),
            (u32, "int8"),
            (i8, "bool"),
        ]
    ),
    # Rounded to fewer bits, quotients of differences say nothing.
    *(
        law(ConvertElementType, to(name), t(2, 3), difference=False)
        for t, name in [
            (f32, "complex64"),
            (c64, "float32"),
            (bf16, "float32"),
            (f32, "bfloat16"),
            (f32, "float8_e4m3fn"),
            (f64, "float32"),
            (f16, "bfloat16"),
        ]
    ),
    *(law(ConvertElementType, to(name), f32(2, 3)) for name in ("int32", "uint32", "bool")),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


BETWEEN = [127.5, 128, 255.9, 256, -128.9, 7.5, 8, -8.5, 15.9, 2147483648.0, 4294967296.0,
           18446744073709551616.0, 448, 464, 480, 61440, 65520, 1 + 2**-8 + 2**-30, 1 + 2**-25,
           1.0625, 1.1875, 2**-9, 240, 248, 31, 2.0**-100]  # fmt: skip


# Of dtypes that convert alike, one or two; all 676 pairs take half a minute to compile.
SOURCES = [
    "bool",
    "int4",
    "uint8",
    "int32",
    "uint64",
    "float8_e4m3fn",
    "float8_e8m0fnu",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]
TARGETS = (*SOURCES, "uint4", "int8", "uint32", "int64", "float8_e5m2", "complex128")


@pytest.mark.parametrize("name", SOURCES)
def test_special_values(name):
    """Saturation, rounding, NaN, infinities, wrapping."""
    values = special_values(DTYPES[name])
    if "float" in name:
        with np.errstate(over="ignore"):
            more = np.array([*BETWEEN, *(-x for x in BETWEEN)]).astype(values.dtype)
        # Below the least normal number compiled programs may flush before they convert.
        normal = np.abs(more.astype(np.float64)) >= float(ml_dtypes.finfo(values.dtype).tiny)
        values = np.concatenate([values, more[normal]])
    check_special({other: to(other) for other in TARGETS}, values)


def test_floats_to_integers_saturate():
    x = np.array([1.9, -1.9, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    i = np.iinfo(np.int32)
    np.testing.assert_array_equal(
        convert_element_type(x, int), [1, -1, i.max, i.min, i.max, i.min, 0]
    )
    np.testing.assert_array_equal(convert_element_type(x, np.uint8), [1, 0, 255, 0, 255, 0, 0])


def test_integers_wrap():
    x = np.array([-1, 300], np.int32)
    np.testing.assert_array_equal(convert_element_type(x, np.uint8), [255, 44])
    np.testing.assert_array_equal(convert_element_type(x, np.uint32), [2**32 - 1, 300])


def test_complex_numbers_lose_the_imaginary_part_but_count_as_true():
    x = np.array([1j, 0, 2 + 1j], np.complex64)
    np.testing.assert_array_equal(convert_element_type(x, float), [0, 0, 2])
    np.testing.assert_array_equal(convert_element_type(x, bool), [True, False, True])
    np.testing.assert_array_equal(convert_element_type(x, int), [0, 0, 2])


def test_nothing_to_do_gives_the_value_itself():
    x = as_value(np.ones(2, np.float32))
    assert convert(x, x.dtype) is x
    assert convert(as_value(1.0), np.dtype(np.float32)).weak_type is False


def test_weakness():
    assert convert(as_value(1), np.dtype(np.float32), weak_type=True).weak_type
    assert not convert_element_type(1, float).weak_type


@pytest.mark.parametrize("narrow", ["bfloat16", "float16", "float8_e5m2"])
def test_derivatives_are_converted_back(narrow):
    for transform in (lambda f: f, jit):
        g = transform(grad(lambda x: convert_element_type(convert(x, DTYPES[narrow]), float)))(3.0)
        assert (float(g), g.dtype) == (1.0, np.float32)
    out, pull = vjp(lambda x: convert(x, DTYPES[narrow]), np.float32(3))
    (ct,) = pull(np.ones((), DTYPES[narrow]))
    assert (out.dtype, ct.dtype) == (DTYPES[narrow], np.float32)


def test_no_derivative_through_integers():
    assert (
        float(grad(lambda x: convert_element_type(convert_element_type(x, int), float))(1.5)) == 0
    )


@pytest.mark.parametrize("dtype", ["bad", [1, 2], "U3", "M8[s]", object])
def test_refused_dtypes(dtype):
    with pytest.raises(TypeError, match=r"convert_element_type: new_dtype must be a dtype of num"):
        convert_element_type(1.0, dtype)
    with pytest.raises(TypeError, match=r"caller: dtype must be a dtype .* such as 'float32', got"):
        dtype_argument(dtype, "caller")


def test_every_pair_has_the_type_inferred():
    for a, b in itertools.product(NAMES, NAMES):
        if "64" in a + b or "128" in a + b:
            continue
        out = convert(as_value(np.zeros(2, DTYPES[a])), DTYPES[b])
        assert out.dtype == out.to_host().dtype == DTYPES[b]


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_floats_to_integers_with_and_without_numbers_out_of_range(source, name):
    """Where the processor notes none that does not fit in 32 bits, others are still cut off."""
    bounds = np.iinfo(name)
    fitting = np.array([0.0, -0.0, 1.5, 2.75, 100.0, 0.99], DTYPES[source])
    beyond = np.array([-3.5, 200.0, -200.0, 60000.0, 3e4, -3e4], DTYPES[source])
    outside = np.array([np.nan, np.inf, -np.inf, 1e4], DTYPES[source])
    for x in (fitting, beyond, outside, np.concatenate([fitting, beyond, outside])):
        want = [
            0 if np.isnan(v) else max(bounds.min, min(bounds.max, v if np.isinf(v) else int(v)))
            for v in x.astype(np.float64)
        ]
        got = ConvertElementType(DTYPES[name]).reference(x)
        assert got.dtype == name
        np.testing.assert_array_equal(got, np.array(want, dtype=name))


def test_arguments_in_an_inexact_dtype():
    for number, dtype in ((1, "float32"), (True, "float32"), (np.int8(2), "float32")):
        assert as_inexact(number, "f").dtype == dtype
    for dtype in ("float16", "float32", "complex64"):
        x = as_value(np.ones(2, dtype))
        assert as_inexact(x, "f") is x
    assert as_inexact(1, "f").weak_type
    with pytest.raises(TypeError, match="f: y must be an array or a number; got a list"):
        as_inexact([1.0], "f", "y")


def test_masks_are_not_lost_in_a_dtype_that_was_asked_for():
    masked = np.ma.array([1, 2], mask=[False, True])
    for dtype in (np.int8, np.int64, np.float32):
        with pytest.raises(TypeError, match=r"^asarray: x is a NumPy masked array"):
            value_in(masked, np.dtype(dtype), "asarray")
    assert value_in(np.array([1, 2]), np.dtype(np.int8), "asarray").dtype == np.int8


# Functions that compute in float32 for narrower floats

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
    inside, (out, _) = seen(lambda: jit(doubled)(x))
    assert inside == ["float32"] and out.dtype == dtype
    slope = grad(lambda x: doubled(x)[0].sum())(x)
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


def test_conversion_keeps_rows_and_axes():
    type = as_value(np.ones((2, 3), np.float32)).type
    op = ConvertElementType(np.dtype(np.int32))
    assert op.by_rows((type,), (op.infer(type),))
    assert [*op.kept_axes(0, type, op.infer(type))] == [0, 1]


def test_an_error_of_a_signal_handler_is_not_taken_for_numpys(monkeypatch):
    class Interrupted:
        def run(self, *_):
            raise FloatingPointError("of a handler")

    monkeypatch.setattr(conversion, "_strict", Interrupted())
    with pytest.raises(FloatingPointError, match="of a handler"):
        convert_element_type(np.array([1.5, 2.5]), np.int32)


@pytest.mark.parametrize(
    ("dtype", "want"),
    [
        ("int32", [5, -3]),
        ("uint32", [5, 2**32 - 3]),
        ("int8", [5, -3]),
        ("float32", [2.0**40, -3.0]),
        ("bool", [True, True]),
    ],
)
def test_wide_integers_of_numpy_are_converted_at_once(dtype, want):
    """Not by way of 32 bits, in which they may not fit."""
    wide = np.array([2**40 + 5, -3])
    out = convert_element_type(wide, dtype)
    assert out.dtype == dtype and out.tolist() == want
    assert convert_element_type(wide[0], dtype).tolist() == want[0]
    if dtype in ("float32", "bool"):
        assert snp.asarray(wide, dtype=dtype).tolist() == want
    else:
        with pytest.raises(
            OverflowError, match=r"^asarray: object holds integers from -3 to 10995"
        ):
            snp.asarray(wide, dtype=dtype)


@pytest.mark.parametrize("value", [np.array([300, 2]), np.int16(300), np.array(-129)])
def test_integers_of_numpy_must_fit_in_the_dtype_that_was_asked_for(value):
    with pytest.raises(
        OverflowError, match=r"^asarray: object .* (do|does) not fit in int8 .*wider dtype"
    ):
        snp.asarray(value, dtype="int8")
    assert (snp.asarray(value, dtype="int16") == value).all()


def test_integers_of_other_classes_become_plain_arrays():
    class Own(np.ndarray):
        pass

    out = snp.asarray(np.arange(3).view(Own), dtype="int8")
    assert type(out.host()) is np.ndarray
    assert out.tolist() == [0, 1, 2]
