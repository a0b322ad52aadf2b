"""Fourier transforms: the laws, NumPy, sizes of all sorts, and errors."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.core.types import array_type
from stretto._engine.ops.fft import Fft
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax import FftType, fft


def of(kind, *lengths):
    return lambda x: fft(x, kind, lengths)


LAWS = [
    law(Fft, of("FFT", 5), c64(2, 5)),
    law(Fft, of("IFFT", 2, 3), c128(2, 3)),
    law(Fft, of("FFT", 2, 1, 3), c64(2, 1, 3)),
    law(Fft, of("RFFT", 6), f32(2, 6)),
    law(Fft, of("RFFT", 3, 5), f64(2, 3, 5)),
    law(Fft, of("RFFT", 1), f32(2, 1)),
    law(Fft, of("IRFFT", 6), c64(2, 4)),
    law(Fft, of("IRFFT", 2, 3, 5), c128(2, 3, 3)),
    law(Fft, of("IRFFT", 4, 2), c64(4, 2)),
    law(Fft, of("RFFT", 4), f32(0, 4)),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


SIZES = [1, 2, 3, 8, 13, 97, 100, 1009, 4096, 10_007, 65_536]


def test_all_sizes_compiled_and_eagerly():
    # Prime, even, odd and large: each kind at every size, as one program.
    rng = np.random.default_rng(0)
    xs = {n: rng.normal(size=(2, n)).astype(np.float32) for n in SIZES}

    def kinds(xs):
        out = {}
        for n, x in xs.items():
            forward, half = fft(x, "FFT", (n,)), fft(x, "RFFT", (n,))
            out[n] = forward, half, fft(forward, "IFFT", (n,)), fft(half, "IRFFT", (n,))
        return out

    for run in (kinds, st.jit(kinds)):
        for n, (forward, half, back, real) in run(xs).items():
            want, scale = np.fft.fft(xs[n].astype(np.float64)), np.sqrt(n)
            # In float32 the error grows with the logarithm of the length.
            np.testing.assert_allclose(forward / scale, want / scale, atol=1e-5)
            np.testing.assert_allclose(half / scale, want[:, : n // 2 + 1] / scale, atol=1e-5)
            np.testing.assert_allclose(back, xs[n], atol=1e-5)
            np.testing.assert_allclose(real, xs[n], atol=1e-5)


def test_what_is_not_hermitian_means_the_same_eagerly_and_compiled():
    # The imaginary parts that have no counterpart are dropped after the other axes' transforms.
    rng = np.random.default_rng(0)
    for lengths in ((6,), (4, 6), (2, 3, 4)):
        shape = (*lengths[:-1], lengths[-1] // 2 + 1)
        x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
        f = of(FftType.IRFFT, *lengths)
        np.testing.assert_allclose(st.jit(f)(x), f(x), atol=1e-6)
        want = np.fft.irfftn(x, lengths, range(len(lengths)))
        np.testing.assert_allclose(f(x), want, atol=1e-6)


def test_any_layout_may_come_before():
    x = np.random.default_rng(0).normal(size=(4, 6, 8)).astype(np.complex64)

    def f(x):
        turned = fft(x.transpose(2, 0, 1), "FFT", (4, 6)).transpose(1, 2, 0)
        return st.vmap(of("IFFT", 4), in_axes=(1,), out_axes=2)(turned.transpose(1, 2, 0))

    np.testing.assert_allclose(st.jit(f)(x), f(x), rtol=1e-4, atol=1e-5)


def test_refuses():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(
        ValueError, match="fft_type must be one of FFT, IFFT, RFFT, IRFFT; got 'dct'"
    ):
        fft(x, "dct", (3,))
    with pytest.raises(TypeError, match=r"RFFT takes real numbers, got complex64\[2\]; use FFT"):
        fft(np.ones(2, np.complex64), "RFFT", (2,))
    with pytest.raises(ValueError, match=r"lengths \(4,\) takes last axes of sizes \(4,\), got"):
        fft(x, FftType.FFT, (4,))
    with pytest.raises(ValueError, match=r"lengths \(6,\) takes last axes of sizes \(4,\), got"):
        fft(x, FftType.IRFFT, (6,))
    with pytest.raises(ValueError, match=r"expected 1 to 3 positive lengths.*got \(1, 2, 3\)"):
        fft(x, FftType.FFT, (1, 2, 3))
    with pytest.raises(ValueError, match=r"positive lengths.*got \(0,\)"):
        fft(np.ones((2, 0), np.float32), "FFT", (0,))


@pytest.mark.parametrize("kind", [17, None, "DCT"])
def test_an_unknown_kind_is_named(kind):
    with pytest.raises(
        ValueError, match=r"^fft: fft_type must be one of FFT, IFFT, RFFT, IRFFT; got"
    ):
        fft(np.ones(3), kind, (3,))


def test_kinds_have_the_numbers_of_stablehlo():
    assert [(k.name, k.value) for k in FftType] == [
        ("FFT", 0), ("IFFT", 1), ("RFFT", 2), ("IRFFT", 3),
    ]  # fmt: skip


def test_the_work_of_a_transform_grows_with_the_logarithm_of_its_length():
    half, whole = array_type((3, 33), np.dtype(np.complex64)), array_type((3, 64), np.dtype("f4"))
    for kind, types in (("RFFT", (whole, half)), ("IRFFT", (half, whole))):
        op = Fft(FftType[kind], (64,))
        assert op.work(types[:1], types[1:]) == 8 * 3 * 64 * 7


F32, C64 = np.dtype(np.float32), np.dtype(np.complex64)


@pytest.mark.parametrize(
    ("kind", "dtype", "shape", "points", "expected"),
    [
        (FftType.FFT, C64, (1 << 17,), 1 << 17, True),
        (FftType.FFT, C64, (1 << 12,), 1 << 12, False),
        (FftType.IFFT, C64, (1 << 12, 128), 128, True),
        (FftType.IFFT, C64, (1 << 16, 16), 16, False),
        (FftType.IFFT, C64, (3552, 64), 64, True),  # of 64 points, 227,273 elements
        (FftType.IFFT, C64, (3551, 64), 64, False),
        (FftType.IFFT, C64, (3608, 63), 63, False),
        (FftType.FFT, C64, (3, 16384), 16384, True),  # of 16,384 points, 46,875 elements
        (FftType.FFT, C64, (3, 16383), 16383, False),
        (FftType.FFT, C64, (1, 46875), 46875, True),
        (FftType.FFT, C64, (1, 46874), 46874, False),
        (FftType.FFT, np.dtype(np.complex128), (1 << 20,), 1 << 20, False),
        (FftType.RFFT, F32, (1 << 20,), 1 << 20, True),
        (FftType.RFFT, F32, ((1 << 20) - 1,), (1 << 20) - 1, False),
        (FftType.RFFT, F32, (1 << 14, 64), 64, True),
        (FftType.RFFT, F32, (1 << 15, 63), 63, False),
        (FftType.IRFFT, C64, ((1 << 20) + 1,), 1 << 21, False),
    ],
    ids=str,
)
def test_transforms_by_kind_dtype_and_points(kind, dtype, shape, points, expected):
    assert Fft(kind, (points,)).compiled((array_type(shape, dtype),)) is expected
