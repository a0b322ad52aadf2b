"""Entries of `numpy/fft`, `numpy/signals.py`, and the primitive that they stand on."""

import numpy as np

from tests.functions.table import call, entry, x

ANY = "f32 c64"
REAL = "f32 i32"

ONE_AXIS = [
    call(x(5)),
    call(x(2, 4), axis=0, norm="ortho"),
    call(x(2, 5), n=3, norm="forward"),
    call(x(2, 3), 6, -2, "backward"),
    call(x(0, 3)),
]
# No points along an axis are refused; no transforms are none.
for name in ("fft", "ifft", "irfft", "hfft"):
    entry(f"numpy.fft.{name}", getattr(np.fft, name), ONE_AXIS, ANY)
for name in ("rfft", "ihfft"):
    entry(f"numpy.fft.{name}", getattr(np.fft, name), ONE_AXIS, REAL)

TWO_AXES = [
    call(x(2, 3, 4)),
    call(x(2, 3, 4), axes=(0, 2), norm="ortho"),
    call(x(3, 4), s=(4, 3), norm="forward"),
    call(x(3, 4), (2, 6), (1, 0)),
]
for name in ("fft2", "ifft2", "irfft2"):
    entry(f"numpy.fft.{name}", getattr(np.fft, name), TWO_AXES, ANY)
entry("numpy.fft.rfft2", np.fft.rfft2, TWO_AXES, REAL)

SEVERAL_AXES = [
    call(x(4)),
    call(x(2, 3, 2, 3, 2)),
    call(x(2, 3, 4), axes=(2, 0)),
    call(x(2, 3), s=(3, 5), norm="ortho"),
    call(x(2, 3, 4), s=(-1, 6), axes=(0, 2)),
]
for name in ("fftn", "ifftn", "irfftn"):
    entry(f"numpy.fft.{name}", getattr(np.fft, name), SEVERAL_AXES, ANY)
entry("numpy.fft.rfftn", np.fft.rfftn, SEVERAL_AXES, REAL)

for name in ("fftfreq", "rfftfreq"):
    steps = [call(8, 0.1), call(5), call(4, d=x(low=0.5)), call(1)]
    entry(f"numpy.fft.{name}", getattr(np.fft, name), steps, "f32")
for name in ("fftshift", "ifftshift"):
    places = [call(x(5)), call(x(4, 3)), call(x(4, 3), axes=1), call(x(2, 3, 4), axes=(0, 2))]
    entry(f"numpy.fft.{name}", getattr(np.fft, name), places, "f32 i32 c64")

SEQUENCES = [
    call(x(n), x(m), mode) for mode in ("full", "same", "valid") for n, m in ((5, 2), (2, 4))
]
for name in ("convolve", "correlate"):
    entry(f"numpy.{name}", getattr(np, name), SEQUENCES, "f32 i32 bool c64")


def transformed(x, kind, lengths):
    axes = range(-len(lengths), 0)
    return getattr(np.fft, f"{kind.lower()}n")(x, lengths, axes)


entry(
    "lax.fft",
    transformed,
    [call(x(2, 4), "FFT", (4,)), call(x(2, 3), "IFFT", (2, 3)), call(x(2, 3), "IRFFT", (2, 5))],
    "f32 c64 i32",
)
