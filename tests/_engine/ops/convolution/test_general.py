"""Convolution: the laws, its definition as a loop, refusals."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution.general import (
    ConvGeneralDilated,
    _pad_array,
    _windows,
    conv,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
    convolve,
)
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers, conv_dimension_numbers
from stretto.laws import bf16, c64, f16, f32, f64, i8, i32, law
from tests.any_size import holds

SETTINGS = {
    "plain": ((2, 3, 5, 6), (4, 3, 3, 2), {}),
    "strided_same": ((2, 3, 5, 6), (4, 3, 3, 2), {"window_strides": (2, 3), "padding": "SAME"}),
    "dilated_cropped": (
        (2, 2, 5, 6),
        (3, 2, 3, 2),
        {
            "window_strides": (2, 1),
            "padding": ((-1, 2), (3, -2)),
            "lhs_dilation": (2, 1),
            "rhs_dilation": (1, 2),
        },
    ),
    "feature_groups": (
        (2, 4, 5, 6),
        (6, 2, 2, 2),
        {
            "window_strides": (1, 2),
            "padding": ((1, 2), (0, 1)),
            "feature_group_count": 2,
            "rhs_dilation": (2, 1),
        },
    ),
    "depthwise": (
        (2, 4, 5),
        (4, 1, 3),
        {"window_strides": (1,), "padding": "SAME", "feature_group_count": 4},
    ),
    "batch_groups": (
        (4, 3, 5, 4),
        (6, 3, 2, 2),
        {"window_strides": (2, 1), "padding": "SAME_LOWER", "batch_group_count": 2},
    ),
    "layout": (
        (5, 2, 6, 3),
        (3, 2, 3, 4),
        {
            "window_strides": (2, 1),
            "padding": ((1, 1), (0, 2)),
            "dimension_numbers": ("HNWC", "WHIO", "CWNH"),
        },
    ),
    "no_space": ((2, 3), (4, 3), {"window_strides": (), "padding": ()}),
    "three_axes": (
        (1, 2, 3, 2, 3),
        (2, 2, 2, 2, 2),
        {"window_strides": (1, 1, 1), "padding": "SAME"},
    ),
    "window_too_large": ((2, 3, 2), (4, 3, 3), {"window_strides": (1,)}),
    "empty_batch": ((0, 3, 4), (4, 3, 3), {"window_strides": (1,)}),
    "left_over": ((2, 1, 8), (1, 1, 3), {"window_strides": (3,)}),
}


def convolution(settings):
    merged = {"window_strides": (1, 1), "padding": "VALID", **settings}
    return lambda lhs, rhs: conv_general_dilated(lhs, rhs, **merged)


PLAIN = convolution({"padding": "SAME"})

LAWS = [
    *[
        law(ConvGeneralDilated, convolution(settings), f32(*lhs), f32(*rhs))
        for lhs, rhs, settings in SETTINGS.values()
    ],
    law(ConvGeneralDilated, PLAIN, f64(2, 2, 3, 3), f64(2, 2, 2, 2)),
    law(ConvGeneralDilated, PLAIN, c64(2, 2, 3, 3), c64(2, 2, 2, 2)),
    law(ConvGeneralDilated, PLAIN, bf16(2, 2, 3, 3), bf16(2, 2, 2, 2)),
    law(ConvGeneralDilated, PLAIN, f16(2, 2, 3, 3), f16(2, 2, 2, 2)),
    law(ConvGeneralDilated, PLAIN, i32(2, 2, 3, 3), i32(2, 2, 2, 2)),
    law(ConvGeneralDilated, PLAIN, i8(2, 2, 3, 3), i8(2, 2, 2, 2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def by_loop(lhs, rhs, strides, padding, ld, rd, feature_groups, batch_groups):
    """out[n, o, p] = sum lhs[n, i, x] rhs[o, i, k] if x ld + low = p s + k rd, group by group."""
    batch, out_features = lhs.shape[0] // batch_groups, rhs.shape[0]
    dilated = lambda n, d: (n - 1) * d + 1
    spatial = [
        (low + dilated(n, a) + high - dilated(k, b)) // s + 1
        for n, k, s, (low, high), a, b in zip(
            lhs.shape[2:], rhs.shape[2:], strides, padding, ld, rd, strict=True
        )
    ]
    out = np.zeros((batch, out_features, *spatial))
    per_group = out_features // (feature_groups * batch_groups)
    for n, o, i in itertools.product(range(batch), range(out_features), range(rhs.shape[1])):
        group = o // per_group
        row = n + batch * (group if batch_groups > 1 else 0)
        feature = i + rhs.shape[1] * (group if feature_groups > 1 else 0)
        for p in itertools.product(*map(range, spatial)):
            for k in itertools.product(*map(range, rhs.shape[2:])):
                place = [
                    a * s + b * d - low
                    for a, s, b, d, (low, _) in zip(p, strides, k, rd, padding, strict=True)
                ]
                whole = all(
                    x % d == 0 and 0 <= x // d < m
                    for x, d, m in zip(place, ld, lhs.shape[2:], strict=True)
                )
                if whole:
                    at = tuple(x // d for x, d in zip(place, ld, strict=True))
                    out[(n, o, *p)] += lhs[(row, feature, *at)] * rhs[(o, i, *k)]
    return out


@pytest.mark.parametrize(
    ("lhs", "rhs", "strides", "padding", "ld", "rd", "groups"),
    [
        ((2, 2, 5, 4), (3, 2, 2, 3), (2, 1), ((1, 0), (-1, 2)), (1, 2), (2, 1), (1, 1)),
        ((2, 4, 5), (6, 2, 2), (2,), ((2, 3),), (3,), (2,), (2, 1)),
        ((6, 2, 5), (6, 2, 2), (2,), ((0, 1),), (1,), (3,), (1, 3)),
    ],
)
def test_is_its_definition(lhs, rhs, strides, padding, ld, rd, groups):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in (lhs, rhs))
    f = lambda x, w: conv_general_dilated(
        x, w, strides, padding, ld, rd, feature_group_count=groups[0], batch_group_count=groups[1]
    )
    want = by_loop(x, w, strides, padding, ld, rd, *groups)
    np.testing.assert_array_equal(f(x, w), want)  # whole numbers, so exact
    np.testing.assert_array_equal(jit(f)(x, w), want)


def test_layouts_agree():
    rng = np.random.default_rng(0)
    x, w = rng.random((2, 3, 5, 6), np.float32), rng.random((4, 3, 2, 3), np.float32)
    want = np.asarray(conv(x, w, (2, 1), "SAME"))
    got = conv_general_dilated(
        x.transpose(0, 2, 3, 1),
        w.transpose(2, 3, 1, 0),
        (2, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    np.testing.assert_allclose(np.asarray(got).transpose(0, 3, 1, 2), want, rtol=1e-6)


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize(("k", "s"), [(1, 1), (2, 1), (3, 2), (2, 3), (5, 4)])
def test_same_gives_the_input_size_over_the_stride(n, k, s):
    x, w = np.arange(1, n + 1, dtype=np.float32)[None, None], np.ones((1, 1, k), np.float32)
    upper, lower = conv(x, w, (s,), "SAME"), conv(x, w, (s,), "SAME_LOWER")
    assert upper.shape == lower.shape == (1, 1, -(-n // s))
    mirrored = conv(x[..., ::-1], w, (s,), "SAME_LOWER")
    if (n - 1) % s == 0:  # the outermost windows mirror each other
        np.testing.assert_array_equal(np.asarray(mirrored)[..., ::-1], upper)


def test_narrow_floats_add_up_in_float32():
    x = np.ones((1, 1024, 1), ml_dtypes.bfloat16)  # ones added up in bfloat16 would stop at 256
    for f in (conv, jit(conv, static_argnums=(2, 3))):
        assert f(x, x, (1,), "VALID").item() == 1024


def test_preferred_element_type():
    x = np.full((1, 4, 1), 100, np.int8)
    assert conv(x, x, (1,), "VALID", preferred_element_type=np.int32).item() == 40000


def test_large_ones_are_compiled():
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (4, 8, 20, 20)).astype(np.float32)
    w = rng.integers(-3, 4, (16, 8, 3, 3)).astype(np.float32)
    plain = tuple(range(4))
    op = ConvGeneralDilated(
        (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), ConvDimensionNumbers(plain, plain, plain)
    )
    out = conv(x, w, (1, 1), "SAME")
    np.testing.assert_array_equal(out, op.reference(x, w))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("k", "s"), [(1, 1), (3, 1), (3, 2), (2, 3), (4, 2)])
def test_transposed_convolution_is_the_gradient(padding, k, s):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (2, 4, 5, 3)).astype(np.float32)
    w = rng.integers(-3, 4, (k, k, 6, 3)).astype(np.float32)  # of the convolution: to 3 features
    out = conv_transpose(x, w, (s, s), padding, transpose_kernel=True)
    larger = np.zeros(out.shape, np.float32)
    forward = lambda v: conv_general_dilated(
        v, w, (s, s), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y, pull = vjp(forward, larger)
    assert y.shape == x.shape
    np.testing.assert_array_equal(out, pull(x)[0])


def test_transposed_convolution_without_reversal():
    x, w = np.eye(3, dtype=np.float32)[None, :, :1], np.arange(3, dtype=np.float32)[:, None, None]
    # Each input adds the kernel to the output, as a correlation: reversed.
    got = conv_transpose(x, w, (1,), "VALID")
    np.testing.assert_array_equal(np.asarray(got)[0, :, 0], [2, 1, 0, 0, 0])
    padded = conv_transpose(x, w, (1,), [(2, 2)])
    np.testing.assert_array_equal(padded, got)


@pytest.mark.parametrize(("k", "s", "padding"), [(2, 2, 0), (4, 2, 1), (3, 3, 1), (3, 2, 2)])
def test_weights_of_transposed_convolutions_meet_no_gaps(k, s, padding):
    """Their gradient has windows of the cotangent, rather than of an image full of zeros."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (2, 3, 5, 4)).astype(np.float32)
    w = rng.integers(-3, 4, (3, 6, k, k)).astype(np.float32)
    forward = lambda w: st.nn.functional.conv_transpose2d(x, w, stride=s, padding=padding)
    out = forward(w)
    ct = rng.integers(-3, 4, out.shape).astype(np.float32)
    gradient = lambda ct: vjp(forward, w)[1](ct)[0]
    spread = [
        e.primitive.lhs_dilation
        for e in st.make_graph(gradient)(ct).equations
        if isinstance(e.primitive, ConvGeneralDilated) and e.outputs[0].type.size == w.size
    ]
    assert spread == [(1, 1)]
    want = np.zeros_like(w)
    for h, v, a, b in itertools.product(range(5), range(4), range(k), range(k)):
        at = h * s + a - padding, v * s + b - padding
        if 0 <= at[0] < out.shape[2] and 0 <= at[1] < out.shape[3]:
            want[:, :, a, b] += np.einsum("ni,no->io", x[:, :, h, v], ct[:, :, *at])
    for run in (lambda f: f, jit):
        np.testing.assert_array_equal(run(gradient)(ct), want)


def test_without_groups_no_axis_is_split_into_them():
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID")
    typed = lambda *shape: st.ShapeDtypeStruct(shape, "float32")
    x, w, ct = typed(2, 3, 5, 5), typed(4, 3, 2, 2), typed(2, 4, 4, 4)
    names = lambda f, *args: [e.primitive.name for e in st.make_graph(f)(*args).equations]
    back = lambda ct, w: st.linear_transpose(lambda x: conv(x, w), x)(ct)
    assert names(back, ct, w) == ["rev", "conv_general_dilated"]
    back = lambda ct, x: st.linear_transpose(lambda w: conv(x, w), w)(ct)
    assert names(back, ct, x) == ["conv_general_dilated"]
    many = lambda t: typed(6, *t.shape)
    got = names(st.vmap(conv, (0, None)), many(x), w)
    assert got == ["reshape", "conv_general_dilated", "reshape"]
    got = names(st.vmap(conv, (None, 0)), x, many(w))
    assert got == ["reshape", "conv_general_dilated", "reshape", "transpose"]


def test_dimension_numbers():
    plain = conv_dimension_numbers((1, 2, 3), (4, 2, 3), None)
    assert plain == ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
    named = conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "WHIO", "NCHW"))
    assert named == ConvDimensionNumbers((0, 3, 2, 1), (3, 2, 0, 1), (0, 1, 3, 2))
    assert conv_dimension_numbers((1,) * 4, (1,) * 4, named) is named


def test_refuses():
    x, w = np.ones((1, 3, 4), np.float32), np.ones((2, 3, 2), np.float32)
    with pytest.raises(ValueError, match=r"float32\[1,3,4\] has 3 features \(axis 1\), but rhs"):
        conv(x, w[:, :2], (1,), "VALID")
    with pytest.raises(ValueError, match=r"'SAME_LOWER', 'VALID' or .* got 'FULL'"):
        conv(x, w, (1,), "FULL")
    with pytest.raises(ValueError, match=r"strides \(1, 1\) and .* must have 1 entries"):
        conv(x, w, (1, 1), "SAME")
    with pytest.raises(ValueError, match="ranks differ"):
        conv(x, w[0], (1,), "VALID")
    with pytest.raises(ValueError, match="use conv_transpose"):
        conv_with_general_padding(x, w, (1,), "SAME", (2,), None)
    with pytest.raises(ValueError, match="same spatial letters"):
        conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NCH", "OIW", "NCH"))
    with pytest.raises(ValueError, match="window_strides must be at least 1, got 0"):
        conv(x, w, (0,), "VALID")
    with pytest.raises(ValueError, match="one of them 1"):
        conv_general_dilated(x, w, (1,), "VALID", feature_group_count=3, batch_group_count=2)
    with pytest.raises(ValueError, match="2 groups do not divide"):
        conv_general_dilated(x, w, (1,), "VALID", batch_group_count=2)
    with pytest.raises(TypeError, match="expected numbers, got bool"):
        conv(x > 0, w > 0, (1,), "VALID")
    with pytest.raises(ValueError, match="conv_transpose: padding must be"):
        conv_transpose(x, w, (1,), "FULL", dimension_numbers=("NCH", "OIH", "NCH"))


def test_padding_takes_away_no_more_than_there_is():
    x, kernel = snp.ones((1, 1, 5)), snp.ones((1, 1, 2))
    assert st.lax.conv_general_dilated(x, kernel, (1,), [(-1, -2)]).shape == (1, 1, 1)
    with pytest.raises(ValueError, match=r"padding \(-9, -9\) takes away more than the 5 elements"):
        st.lax.conv_general_dilated(x, kernel, (1,), [(-9, -9)])
    for name in ("rhs_dilation", "lhs_dilation"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            st.lax.conv_general_dilated(x, kernel, (1,), [(0, 0)], **{name: (0,)})


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_images_and_kernels_of_any_size(stride):
    x, k = drawn(1, 4, 7), drawn(3, 4, 3)
    same = lambda x, k: lax.conv_general_dilated(x, k, (stride,), "SAME")
    holds(same, [x, k], {(0, 2): 0}, tolerance=10)
    # the kernel may have more padding than the image, and its size decides how much is in front
    spread = lambda x, k: lax.conv_general_dilated(x, k, (stride,), [(1, 2)], lhs_dilation=(2,))
    holds(spread, [x, k], {(0, 2): 0, (1, 2): 1}, tolerance=10)


def test_groups_of_any_size():
    # what is in a group stays in it, though a group of the bucket has more features
    features = lambda x, k: lax.conv_general_dilated(
        x.reshape(1, -1, 7), k, (1,), [(0, 0)], feature_group_count=2
    )
    holds(features, [drawn(1, 2, 4, 7), drawn(6, 4, 3)], {(0, 2): 0, (1, 1): 0}, tolerance=10)
    outputs = lambda x, k: lax.conv_general_dilated(
        x, k.reshape(-1, 2, 3), (1,), [(0, 0)], feature_group_count=2
    )
    holds(outputs, [drawn(1, 4, 7), drawn(2, 3, 2, 3)], {(1, 1): 0}, tolerance=10)
    each = lambda x, k: lax.conv_general_dilated(
        x, k, (1,), [(1, 0)], feature_group_count=x.shape[1]
    )
    holds(each, [drawn(1, 4, 7), drawn(4, 1, 3)], {(0, 1): 0, (1, 0): 0}, tolerance=10)
    both = lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME")
    varying = {(0, 1): 0, (0, 2): 1, (0, 3): 2, (1, 1): 3, (1, 2): 1, (1, 3): 4}
    holds(st.vmap(both), [drawn(2, 3, 4, 7), drawn(2, 5, 4, 2)], varying, tolerance=10)


LINE = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))


def by_definition(x, k, stride, pair, spread, gap):
    """out[o] = sum of k[j] x[i] where i spread + low = o stride + j gap."""
    (low, high), n = pair, len(x)
    size = low + ((n - 1) * spread + 1 if n else 0) + high
    count = max(0, (size - ((len(k) - 1) * gap + 1)) // stride + 1)
    out = np.zeros(count)
    for o, i, j in itertools.product(range(count), range(n), range(len(k))):
        if i * spread + low == o * stride + j * gap:
            out[o] += k[j] * x[i]
    return out


def test_every_setting_of_one_axis_by_its_definition():
    k = np.array([1.0, -2.0, 4.0], np.float32)
    settings = itertools.product(
        (0, 1, 4), (1, 2, 3), ((0, 0), (2, 1), (-1, 2), (3, -2), (-3, 4)), (1, 2, 3), (1, 2)
    )
    for n, stride, pair, spread, gap in settings:
        x = np.arange(1, n + 1, dtype=np.float32)
        if pair[0] + ((n - 1) * spread + 1 if n else 0) + pair[1] < 0:
            continue
        op = ConvGeneralDilated((stride,), (pair,), (spread,), (gap,), LINE)
        got = convolve(op, x[None, None], k[None, None], np.dtype(np.float32))
        np.testing.assert_array_equal(got[0, 0], by_definition(x, k, stride, pair, spread, gap))


def test_nothing_is_copied_where_nothing_is_padded():
    x = np.ones((1, 1, 4), np.float32)
    assert _pad_array(x, ((0, 0),), (1,)) is x
    np.testing.assert_array_equal(_pad_array(x, ((-5, 3),), (1,)), np.zeros((1, 1, 2)))
    np.testing.assert_array_equal(_pad_array(x, ((-1, -1),), (2,))[0, 0], [0, 1, 0, 1, 0])


def test_windows_are_a_view_that_cannot_be_written():
    x = np.arange(6.0).reshape(1, 1, 6)
    view = _windows(x, np.zeros((1, 1, 2)), (2,), (3,))
    np.testing.assert_array_equal(view[0, 0], [[0, 3], [2, 5]])
    assert np.shares_memory(view, x) and not view.flags.writeable


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_add_up_in_32_bits(dtype):
    ones = np.ones((1, 1, 5000), dtype)
    op = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), LINE)
    (((got,),),) = convolve(op, ones, ones, np.dtype(dtype))
    assert got.dtype == dtype and got == dtype(5000)


def test_the_work_and_the_weakness_of_a_convolution():
    plain = conv_dimension_numbers((1,) * 3, (1,) * 3, None)
    op = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), plain, feature_groups=2)
    f32 = np.dtype(np.float32)
    x, w = array_type((3, 8, 9), f32), array_type((6, 4, 2), f32)
    out = op.infer(x, w)
    assert op.work((x, w), (out,)) == (3 * 6 * 8) * (4 * 2)
    weak = [array_type(t.shape, f32, True) for t in (x, w)]
    assert op.infer(*weak).weak_type
    assert not op.infer(weak[0], w).weak_type and not op.infer(x, weak[1]).weak_type
    wide = ConvGeneralDilated(*(getattr(op, n) for n in ("strides", "padding")), (1,), (1,), plain,
                              2, preferred=np.dtype(np.float64))  # fmt: skip
    assert wide.infer(*weak) is array_type(out.shape, np.dtype(np.float64))


F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


@pytest.mark.parametrize(
    ("lhs", "rhs", "dtype", "expected"),
    [
        ((32, 32, 32, 32), (64, 32, 3, 3), F32, True),
        ((1, 32, 32, 32), (64, 32, 3, 3), F32, False),
        ((32, 32, 32, 32), (64, 32, 3, 3), F64, False),
        ((64, 3, 64, 64), (32, 3, 3, 3), F32, False),
        ((256, 3, 128, 128), (8, 3, 3, 3), F32, True),  # for memory
        ((1, 1, 1, 1 << 24), (1, 1, 1, 1), F32, True),
        ((1, 1, 1, (1 << 24) - 1), (1, 1, 1, 1), F32, False),
        # of 1 << 26 products, with 16 features
        ((16, 16, 1, 4096), (64, 16, 1, 1), F32, True),
        ((16, 16, 1, 4095), (64, 16, 1, 1), F32, False),
        ((16, 15, 1, 4370), (64, 15, 1, 1), F32, False),
    ],
    ids=str,
)
def test_convolutions_of_many_features(lhs, rhs, dtype, expected):
    dims = conv_dimension_numbers(lhs, rhs, ("NCHW", "OIHW", "NCHW"))
    ones, around = (1, 1), (rhs[-1] // 2, rhs[-1] // 2)
    op = ConvGeneralDilated(ones, (around, around), ones, ones, dims)
    assert op.compiled(tuple(array_type(s, dtype) for s in (lhs, rhs))) is expected
