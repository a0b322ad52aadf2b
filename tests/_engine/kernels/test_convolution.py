"""Convolutions in kernels: values, gradients and members, whatever the geometry."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.kernels import LEVEL, WITHOUT

ROOT = Path(__file__).parents[3]

with_kernels = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


def called(function, *args):
    """How many calls of the kernel the program of these arguments has."""
    return st.jit(function).lower(*args).as_text().count('call_target_name = "stretto_conv')


def drawn(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(got, expected, dtype):
    """Within rounding of the largest element, for sums of a few thousand terms."""
    scale = max(1e-30, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(
        got, expected, rtol=0, atol=scale * 30 * float(np.finfo(dtype).eps), equal_nan=False
    )


def geometry(seed):
    """Return shapes and parameters of a convolution in one or two dimensions."""
    rng = np.random.default_rng(seed)
    number = lambda low, high: int(rng.integers(low, high + 1))
    n = 1 if seed % 4 == 0 else 2
    kernel, gaps = [number(1, 5) for _ in range(n)], [number(1, 3) for _ in range(n)]
    steps, spread = [number(1, 3) for _ in range(n)], [1] * n
    if seed % 3 == 0:
        steps, spread = spread, steps
    sizes = [number(1, 700 if n == 1 else 33) for _ in range(n)]
    padding = [(number(-1, 4), number(-1, 4)) for _ in range(n)]
    groups = number(1, 3) if seed % 5 == 0 else 1
    inputs, outputs = number(4, 40), number(4, 40)
    if seed % 7 == 0:  # each channel by itself
        groups, inputs, outputs = number(2, 20), number(1, 2), number(1, 2)
    for i, (size, k, gap, d) in enumerate(zip(sizes, kernel, gaps, spread, strict=True)):
        low, high = padding[i]
        room = (size - 1) * d + 1 + low + high - (k - 1) * gap - 1
        padding[i] = low, high - min(0, room)  # so that a window fits
    options = {
        "window_strides": steps,
        "padding": padding,
        "lhs_dilation": spread,
        "rhs_dilation": gaps,
        "feature_group_count": groups,
    }
    image = (number(1, 4), groups * inputs, *sizes)
    return image, (groups * outputs, inputs, *kernel), options


def values_and_gradients(f):
    def both(x, w, ct):
        out, back = st.vjp(f, x, w)
        return out, *back(ct)

    return both


@with_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("seed", range(24))
def test_any_geometry_and_its_gradients(seed, dtype):
    image, kernel, options = geometry(seed)
    f = functools.partial(lax.conv_general_dilated, **options)
    x, w = drawn(*image), drawn(*kernel, seed=1)
    (equation,) = st.make_graph(f)(x, w).equations
    expected = equation.primitive.reference(x.astype(float), w.astype(float))
    ct = drawn(*expected.shape, seed=2)
    with st.config(enable_x64=True):
        got = st.jit(values_and_gradients(f))(*[v.astype(dtype) for v in (x, w, ct)])
        close(got[0], expected, dtype)
        with st.config(kernels=False):
            slopes = st.jit(values_and_gradients(f))(*[v.astype(float) for v in (x, w, ct)])[1:]
        for one, other in zip(got[1:], slopes, strict=True):
            close(one, other, dtype)


@with_kernels
@pytest.mark.parametrize("axes", [(2,), (3,), (2, 3)])
def test_reversed_windows_are_read_where_they_lie(axes):
    x, w = drawn(2, 16, 12, 12), drawn(24, 16, 3, 3, seed=1)
    f = st.jit(lambda x, w: lax.conv_general_dilated(x, lax.rev(w, axes), (1, 1), "SAME"))
    text = f.lower(x, w).compile().as_text()
    assert '"stretto_convolution"' in text and "reverse(" not in text
    got = f(x, w)
    with st.config(kernels=False):
        close(got, f(x, w), np.float32)


@with_kernels
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_narrow_floats_are_summed_in_float32(seed, wide, dtype):
    """Values and gradients are within half a last place, and rounding of float32."""
    image, kernel, options = geometry(seed)
    if seed % 2:  # whole pairs of features
        groups = options["feature_group_count"]
        image, kernel = (image[0], 18 * groups, *image[2:]), (kernel[0], 18, *kernel[2:])
    preferred = np.float32 if wide else None
    f = functools.partial(lax.conv_general_dilated, preferred_element_type=preferred, **options)
    exact = functools.partial(lax.conv_general_dilated, **options)
    x, w = drawn(*image, dtype=dtype), drawn(*kernel, dtype=dtype, seed=1)
    ct = drawn(*f(x, w).shape, dtype=preferred or dtype, seed=2)
    got = st.jit(values_and_gradients(f))(x, w, ct)
    with st.config(enable_x64=True, kernels=False):
        both = st.jit(values_and_gradients(exact))
        expected = both(*[v.astype(float) for v in (x, w, ct)])
        sizes = both(*[np.abs(v.astype(float)) for v in (x, w, ct)])
    for one, other, size, own in zip(
        got, map(np.asarray, expected), sizes, (preferred or dtype, dtype, dtype), strict=True
    ):
        assert one.dtype == own
        last = float(ml_dtypes.finfo(own).eps) / 2 * np.abs(other)
        bound = 1.01 * last + 2e-6 * np.max(size, initial=0) + 1e-7
        assert (np.abs(np.asarray(one).astype(float) - other) <= bound).all()


@with_kernels
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "f16"])
def test_narrow_floats_call_kernels_but_for_each_channel_alone(dtype):
    f = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", feature_group_count=x.shape[1] // w.shape[1]
    )
    x = drawn(2, 32, 14, 14, dtype=dtype)
    assert called(f, x, drawn(24, 32, 3, 3, dtype=dtype)) == 1
    assert (
        called(st.vmap(f), drawn(3, *x.shape, dtype=dtype), drawn(3, 24, 32, 3, 3, dtype=dtype))
        == 1
    )
    assert called(f, x, drawn(32, 1, 3, 3, dtype=dtype)) == 0


CASES = {
    # image, kernel, strides, padding, groups: the calls forward, and with both gradients
    "3×3": ((2, 16, 12, 12), (24, 16, 3, 3), 1, "SAME", 1, 1, 3),
    "rows of whole vectors": ((2, 16, 32, 32), (24, 16, 3, 3), 1, "SAME", 1, 1, 3),
    "with a step": ((2, 16, 33, 33), (24, 16, 3, 3), 2, "SAME", 1, 1, 3),
    "one image of few positions": ((1, 64, 4, 4), (64, 64, 3, 3), 1, "SAME", 1, 1, 2),
    "few features": ((2, 3, 64, 64), (16, 3, 7, 7), 2, "SAME", 1, 1, 3),
    "in groups": ((2, 16, 12, 12), (16, 8, 3, 3), 1, "SAME", 2, 1, 3),
    "lines": ((2, 16, 400), (24, 16, 5), 1, "SAME", 1, 1, 3),
    "columns": ((2, 16, 400, 1), (24, 16, 5, 1), 1, "SAME", 1, 1, 3),
    "one element": ((2, 16, 12, 12), (24, 16, 1, 1), 1, "SAME", 1, 0, 1),
    "windows apart": ((2, 8, 64, 64), (24, 8, 8, 8), 8, "VALID", 1, 1, 2),
    "of each channel": ((2, 16, 32, 32), (16, 1, 3, 3), 1, "SAME", 16, 1, 3),
    "of each channel, with a step": ((2, 16, 33, 33), (32, 1, 5, 5), 2, "SAME", 16, 1, 3),
    "few outputs": ((2, 16, 20, 20), (2, 16, 3, 3), 1, "SAME", 1, 1, 3),
    "tiny": ((1, 2, 4, 4), (4, 2, 3, 3), 1, "SAME", 1, 0, 0),
    "of volumes": ((1, 8, 8, 8, 8), (8, 8, 3, 3, 3), 1, "SAME", 1, 1, 3),  # planes
}


@with_kernels
@pytest.mark.parametrize("case", CASES)
def test_which_are_called(case):
    image, kernel, step, padding, groups, forward, all_three = CASES[case]
    x, w = drawn(*image), drawn(*kernel, seed=1)
    f = lambda x, w: lax.conv_general_dilated(
        x, w, (step,) * (x.ndim - 2), padding, feature_group_count=groups
    )
    loss = lambda x, w: snp.sin(f(x, w) / 16).sum()
    slopes = st.grad(loss, argnums=(0, 1))
    assert called(f, x, w) == forward
    assert called(slopes, x, w) == all_three
    got = st.jit(slopes)(x, w)
    with st.config(kernels=False):
        assert called(slopes, x, w) == 0
        expected = st.jit(slopes)(x, w)
    for one, other in zip(got, expected, strict=True):
        close(one, np.asarray(other), np.float32)


@with_kernels
@pytest.mark.parametrize("dims", [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NCHW", "HWIO")])
def test_layouts(dims):
    """Images with features last are left to other forms, unless a transpose brought them there."""
    x, w = drawn(2, 16, 12, 12), drawn(24, 16, 3, 3, seed=1)
    image, kernel = ["NCHW".index(c) for c in dims[0]], ["OIHW".index(c) for c in dims[1]]
    f = lambda x, w: lax.conv_general_dilated(
        x.transpose(image), w.transpose(kernel), (1, 1), "SAME", dimension_numbers=(*dims, dims[0])
    )
    (equation,) = [e for e in st.make_graph(f)(x, w).equations if "conv" in e.primitive.name]
    operands = x.transpose(image).astype(float), w.transpose(kernel).astype(float)
    close(st.jit(f)(x, w), equation.primitive.reference(*operands), np.float32)
    assert called(f, x, w) == (dims[0] == "NCHW")


@with_kernels
@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
@pytest.mark.parametrize("groups", [1, 2])
def test_members_are_one_call(axes, groups):
    x, w = drawn(5, 2, 16, 12, 12), drawn(5, 8, 16 // groups, 3, 3, seed=1)
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=groups)
    args = [v if axis == 0 else v[0] for v, axis in zip((x, w), axes, strict=True)]
    many = st.vmap(f, in_axes=axes)
    assert called(many, *args) == 1
    each = [f(x[i if axes[0] == 0 else 0], w[i if axes[1] == 0 else 0]) for i in range(5)]
    close(st.jit(many)(*args), np.stack(each), np.float32)
    loss = st.grad(lambda x, w: snp.sin(f(x, w) / 16).sum(), argnums=(0, 1))
    got = st.jit(st.vmap(loss, in_axes=axes))(*args)
    with st.config(kernels=False):
        expected = st.jit(st.vmap(loss, in_axes=axes))(*args)
    for one, other in zip(got, expected, strict=True):
        close(one, np.asarray(other), np.float32)


@with_kernels
@pytest.mark.parametrize(
    ("image", "kernel", "step", "groups"),
    [
        ((2, 16, 16, 16), (24, 16, 3, 3), 1, 1),  # rows of whole vectors
        ((2, 16, 21, 21), (24, 16, 3, 3), 1, 1),
        ((2, 16, 30, 30), (24, 16, 3, 3), 2, 1),
        ((2, 16, 21, 21), (16, 1, 3, 3), 1, 16),
        ((2, 16, 21, 21), (2, 16, 3, 3), 1, 1),
        ((2, 32, 21, 21), (32, 32, 3, 3), 1, 1),
    ],
)
def test_what_is_not_finite_stays_where_it_is(image, kernel, step, groups):
    """Also in gradients: neither rows nor examples beside each other mix."""
    x, w = drawn(*image), drawn(*kernel, seed=1)
    f = lambda x, w: lax.conv_general_dilated(
        x, w, (step, step), "SAME", feature_group_count=groups
    )
    x[0, 3, 5, 7], x[1, 2, 0, image[3] - 1] = np.nan, np.inf
    ct = drawn(*f(x, w).shape, seed=2)
    ct[0, 1, 2, ct.shape[3] - 1] = np.nan
    assert called(values_and_gradients(f), x, w, ct) == 3
    got = st.jit(values_and_gradients(f))(x, w, ct)
    with st.config(kernels=False):
        expected = st.jit(values_and_gradients(f))(x, w, ct)
    for one, other in zip(got, map(np.asarray, expected), strict=True):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_array_equal(np.isposinf(one), np.isposinf(other))
        finite = np.isfinite(other)
        assert not finite.all() and finite.any()
        close(np.asarray(one)[finite], other[finite], np.float32)


SQUARES = {
    # image, outputs, padding: windows of three by three with enough tiles for fewer products
    "whole vectors of tiles": ((2, 32, 64, 64), 32, 1),
    "more words of an image than a cache holds": ((2, 48, 80, 80), 48, 1),
    "few tiles, a sum in parts": ((4, 300, 7, 7), 130, 1),
    "tiles in several rows": ((4, 40, 14, 14), 35, 1),
    "odd sides, no border": ((5, 33, 13, 19), 48, 0),
    "long rows, a wide border": ((1, 32, 5, 121), 64, 2),
    "one row": ((1, 32, 3, 301), 32, 0),
}


@with_kernels
@pytest.mark.parametrize("case", SQUARES)
@pytest.mark.parametrize("members", [0, 2, 5])
def test_fewer_products(case, members):
    """Values and both gradients of windows of three by three are those of sums in order."""
    image, outputs, border = SQUARES[case]
    lead = (members,) * bool(members)
    x, w = drawn(*lead, *image), drawn(*lead, outputs, image[1], 3, 3, seed=1)
    one = functools.partial(
        lax.conv_general_dilated, window_strides=(1, 1), padding=[(border, border)] * 2
    )
    f = st.vmap(one) if members else one
    ct = drawn(*f(x, w).shape, seed=2)
    got = st.jit(values_and_gradients(f))(x, w, ct)
    with st.config(enable_x64=True):  # which has sums in order alone
        expected = st.jit(values_and_gradients(f))(*[v.astype(float) for v in (x, w, ct)])
    for one_of, other in zip(got, map(np.asarray, expected), strict=True):
        assert other.dtype == np.float64
        close(one_of, other, np.float32)


@with_kernels
def test_fewer_products_are_not_those_of_sums_in_order():
    """So that the cases above are of the other way, and what is infinite of this."""
    x, w = drawn(2, 32, 64, 64), drawn(32, 32, 3, 3, seed=1)
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME")
    few = st.jit(f)(x, w)
    x[0, 0, 0, 0] = np.inf  # by which all are computed again, in order
    ordered = np.asarray(st.jit(f)(x, w))
    assert np.isfinite(ordered).sum() == ordered.size - 4 * 32
    assert 0 < (np.asarray(few)[1] != ordered[1]).mean() < 1


@with_kernels
def test_an_output_reads_its_own_window_alone():
    x, w = drawn(2, 32, 30, 30), drawn(32, 32, 3, 3, seed=1)
    f = st.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"))
    before = np.asarray(f(x, w))
    x[1, :, 11, 14] *= 1e20
    apart = np.argwhere((np.asarray(f(x, w)) != before).any(1))
    assert {tuple(place) for place in apart} == {
        (1, y, x) for y in (10, 11, 12) for x in (13, 14, 15)
    }


APART = {
    # image, kernel, padding: a step of two, whose gradient by the image is of a spread image
    "three by three": ((2, 12, 28, 30), (20, 12, 3, 3), ((1, 1), (1, 1))),
    "odd sides": ((3, 9, 17, 27), (7, 9, 3, 3), ((0, 1), (1, 0))),
    "residues without elements": ((2, 9, 24, 24), (17, 9, 1, 1), ((0, 0), (0, 0))),
    "even windows, wide borders": ((1, 6, 20, 32), (33, 6, 4, 2), ((3, 2), (1, 1))),
    "large windows": ((1, 5, 40, 36), (9, 5, 7, 8), ((2, 3), (3, 3))),
    "a sum in parts, short rows": ((4, 130, 14, 14), (200, 130, 3, 3), ((1, 1), (1, 1))),
    "more than a slab": ((2, 8, 96, 96), (136, 8, 3, 3), ((1, 1), (1, 1))),
}


@with_kernels
@pytest.mark.parametrize("case", APART)
@pytest.mark.parametrize("members", [0, 2, 5])
def test_images_that_are_spread_out_by_two(case, members):
    """Values and both gradients are those of XLA."""
    image, kernel, padding = APART[case]
    lead = (members,) * bool(members)
    x, w = drawn(*lead, *image), drawn(*lead, *kernel, seed=1)
    one = functools.partial(lax.conv_general_dilated, window_strides=(2, 2), padding=padding)
    f = st.vmap(one) if members else one
    ct = drawn(*f(x, w).shape, seed=2)
    got = st.jit(values_and_gradients(f))(x, w, ct)
    with st.config(kernels=False):
        expected = st.jit(values_and_gradients(f))(x, w, ct)
    for one_of, other in zip(got, map(np.asarray, expected), strict=True):
        close(one_of, other, np.float32)


_BITS = """
import hashlib, sys
import numpy as np
import stretto as st
from stretto import lax
rng = np.random.default_rng(0)
done = hashlib.sha256()
for image, kernel, step in [
    ((3, 16, 21, 21), (40, 16, 3, 3), 1),
    ((3, 16, 32, 32), (40, 16, 3, 3), 2),
    ((1, 64, 4, 4), (64, 64, 3, 3), 1),
    ((3, 32, 21, 21), (40, 32, 3, 3), 1),
    ((4, 128, 7, 7), (130, 128, 3, 3), 1),
    ((2, 64, 80, 96), (64, 64, 3, 3), 1),
    ((4, 130, 14, 14), (136, 130, 3, 3), 2),
]:
    x, w = rng.standard_normal(image, "f"), rng.standard_normal(kernel, "f")
    f = lambda x, w: (lax.conv_general_dilated(x, w, (step, step), "SAME") ** 2).sum()
    for slope in st.jit(st.grad(f, argnums=(0, 1)))(x, w):
        done.update(np.asarray(slope).tobytes())
print(done.hexdigest())
"""


def _printed(script, **environment):
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


@with_kernels
def test_bits_do_not_depend_on_the_threads():
    one, two, four = [_printed(_BITS, NPROC=n, PJRT_NPROC=n) for n in ("1", "2", "4")]
    assert one == two == four


@with_kernels
@pytest.mark.skipif(not LEVEL.startswith("avx512"), reason="this processor has one level alone")
def test_the_lower_level_passes_too():
    environment = {**os.environ, "STRETTO_KERNELS_LEVEL": "avx2"}
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
        + ["-k", "geometry or narrow or called or members or fewer or window or spread"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout
