"""Small pictures of values: lines and bars as SVG, matrices as PNG, and bars in characters.

They take NumPy arrays of float64, at most a few thousand elements, and give markup that refers to
nothing outside.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

INK = "#3584c4"
"""A colour that is legible on white and on black."""

_WIDTH, _HEIGHT = 240, 48
_BLOCKS = "▁▂▃▄▅▆▇█"

# Dark blue to yellow by way of green, of even lightness: legible for the colour-blind, and both
# ends differ from white and from black.
_COLOURS = np.array(
    [(48, 18, 99), (52, 74, 140), (38, 120, 142), (38, 168, 126), (132, 206, 70), (250, 228, 60)]
)
_MISSING = (150, 150, 150)


def curve(values: np.ndarray) -> str:
    """Return the values of a row, from left to right, with gaps where they are not finite."""
    known = np.isfinite(values)
    if not known.any():
        return ""
    low, high = values[known].min(), values[known].max()
    xs = np.linspace(2, _WIDTH - 2, len(values)) if len(values) > 1 else np.array([_WIDTH / 2])
    ys = _HEIGHT - 2 - (_HEIGHT - 4) * _within(values, low, high)
    path, is_start = "", True
    for x, y, here in zip(xs.tolist(), ys.tolist(), known.tolist(), strict=True):
        if here:
            # A line of no length, with round ends, is a dot, should the next value be a gap.
            path += f"M{x:.1f} {y:.1f}h0" if is_start else f"L{x:.1f} {y:.1f}"
        is_start = not here
    return _svg(
        f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="2" stroke-linecap="round"/>'
    )


def bars(values: np.ndarray, count: int = 40) -> str:
    """Say how often values are in each of some ranges of equal width, least to greatest."""
    heights = _counts(values, count)
    if not len(heights):
        return ""
    width = _WIDTH / len(heights)
    tops = np.where(heights > 0, np.maximum((_HEIGHT - 1) * heights / heights.max(), 1), 0)
    path = "".join(
        [
            f"M{k * width:.1f} {_HEIGHT}v-{top:.1f}h{width * 0.85:.1f}V{_HEIGHT}z"
            for k, top in enumerate(tops.tolist())
            if top
        ]
    )
    return _svg(f'<path d="{path}" fill="{INK}"/>')


def sketch(values: np.ndarray, count: int = 24) -> str:
    """Return the same in characters, one for each range: ``▂▅█▅▂``."""
    heights = _counts(values, count)
    if not len(heights):
        return ""
    levels = np.ceil((len(_BLOCKS) - 1) * heights / heights.max()).astype(int)
    return "".join([_BLOCKS[k] for k in levels])


def _counts(values: np.ndarray, count: int) -> np.ndarray:
    """Say how many finite values are in each range; none if there is no such value."""
    values = values[np.isfinite(values)].ravel()
    if not len(values):
        return values
    within = _within(values, values.min(), values.max())
    places = np.minimum((within * count).astype(int), count - 1)
    return np.bincount(places, minlength=count)


def _within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Say where each value is between the two, from 0 to 1; in the middle where they are equal."""
    # Halved first, as the difference of two large numbers may be infinite.
    span = high / 2 - low / 2
    with np.errstate(invalid="ignore", over="ignore"):
        return (values / 2 - low / 2) / span if span else np.full(values.shape, 0.5)


def matrix(values: np.ndarray) -> str:
    """Give the elements of a matrix as colours, dark for the least; grey for what is not finite."""
    rows, columns = values.shape
    if not values.size:
        return ""
    known = np.isfinite(values)
    low, high = (values[known].min(), values[known].max()) if known.any() else (0.0, 0.0)
    place = np.where(known, _within(np.where(known, values, low), low, high), 0)
    scaled = place * (len(_COLOURS) - 1)
    below = np.minimum(scaled.astype(int), len(_COLOURS) - 2)
    share = (scaled - below)[..., None]
    pixels = np.rint(_COLOURS[below] * (1 - share) + _COLOURS[below + 1] * share)
    pixels[~known] = _MISSING
    scale = min(12, _WIDTH / columns, 160 / rows)
    width, height = max(6, round(columns * scale)), max(6, round(rows * scale))
    data = base64.b64encode(_png(pixels.astype(np.uint8))).decode()
    return (
        f'<img alt="the elements as colours" width="{width}" height="{height}" '
        f'src="data:image/png;base64,{data}"/>'
    )


def _png(pixels: np.ndarray) -> bytes:
    """Return an image of shape (rows, columns, 3). Source: the PNG specification, third edition."""
    rows, columns, _ = pixels.shape
    # Each row begins with the number of its filter: 0, none.
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], 1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in chunks
        ]
    )


def _svg(inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none">{inside}</svg>'
    )
