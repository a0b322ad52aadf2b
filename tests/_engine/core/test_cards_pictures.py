"""Small pictures of values."""

import base64
import re
import struct
import zlib

import numpy as np
import pytest

from stretto._engine.core.cards import bars, curve, matrix, sketch
from tests.pages import page_of

ODD = [
    np.array([1.0, np.nan, 3.0, np.inf, -np.inf]),
    np.array([np.nan, np.nan]),
    np.array([np.inf]),
    np.array([5.0]),
    np.array([2.0, 2.0, 2.0]),
    np.array([-1.7e308, 1.7e308]),
    np.array([5e-324, 0.0]),
    np.zeros(0),
]


def decoded(html):
    """The pixels of a picture, (rows, columns, 3), by the parts of the file."""
    data = base64.b64decode(re.search('base64,([^"]+)', html)[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        chunks[kind] = data[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert check == zlib.crc32(kind + chunks[kind])
        at += 12 + length
    columns, rows, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, kind) == (8, 2)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(rows, columns, 3)


@pytest.mark.parametrize("values", ODD, ids=str)
@pytest.mark.parametrize("draw", [curve, bars])
def test_numbers_are_within_the_picture(draw, values):
    html = page_of(draw(values))
    assert (html == "") == (not np.isfinite(values).any())
    if html:
        path = re.search('d="([^"]*)"', html)[1]
        assert "nan" not in path and "inf" not in path
        for number in re.findall(r"[\d.]+", path):
            assert 0 <= float(number) <= 240
    assert set(sketch(values)) <= set("▁▂▃▄▅▆▇█")


def test_a_curve_has_gaps():
    path = re.search('d="([^"]*)"', curve(np.array([0.0, 1.0, np.nan, 1.0, 0.0])))[1]
    assert path == "M2.0 46.0h0L61.0 2.0M179.0 2.0h0L238.0 46.0"


def test_bars_count():
    values = np.array([0.0] * 4 + [1.0] * 2)
    heights = [float(h) for h in re.findall(r"v-([\d.]+)", bars(values, 2))]
    assert heights[0] == 2 * heights[1]
    assert sketch(values, 2) == "█▅" and sketch(np.arange(100.0), 4) == "████"


def test_how_many_ranges_there_are_unasked():
    values = np.arange(1200.0)
    assert bars(values).count("M") == 40 and len(sketch(values)) == 24


def test_the_colours_of_a_matrix():
    """Six of even steps in lightness, and mixtures of neighbours between them."""
    six = [
        (48, 18, 99),
        (52, 74, 140),
        (38, 120, 142),
        (38, 168, 126),
        (132, 206, 70),
        (250, 228, 60),
    ]
    pixels = decoded(page_of(matrix(np.array([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]))))
    assert list(map(tuple, pixels[0].tolist())) == six
    pixels = decoded(page_of(matrix(np.array([[0.0, 0.25, np.nan, 2.0]]))))
    # An eighth of the way is five eighths of the first step.
    mixed = [round(a * 3 / 8 + b * 5 / 8) for a, b in zip(*six[:2], strict=True)]
    assert list(map(tuple, pixels[0].tolist())) == [six[0], tuple(mixed), (150, 150, 150), six[-1]]


def test_a_matrix_is_dark_for_the_least():
    values = np.array([[0.0, 1.0, 2.0], [np.nan, 4.0, np.inf]])
    pixels = decoded(page_of(matrix(values)))
    assert pixels.shape == (2, 3, 3)
    lightness = pixels.astype(int).sum(-1)
    assert lightness[0, 0] < lightness[0, 1] < lightness[0, 2] < lightness[1, 1]
    assert (pixels[1, 0] == pixels[1, 2]).all() and (pixels[1, 0] == pixels[1, 0, 0]).all()


@pytest.mark.parametrize("values", [*[v.reshape(1, -1) for v in ODD], np.zeros((0, 3))], ids=str)
def test_odd_matrices(values):
    html = page_of(matrix(values))
    if values.size:
        assert decoded(html).shape == (*values.shape, 3)
    else:
        assert html == ""


@pytest.mark.parametrize("shape", [(1, 1), (1, 4096), (4096, 1), (64, 64)])
def test_pictures_stay_small(shape):
    html = matrix(np.random.default_rng(0).normal(size=shape))
    width, height = [int(re.search(f'{side}="([0-9]+)"', html)[1]) for side in ("width", "height")]
    assert 6 <= width <= 240 and 6 <= height <= 160 and len(html) < 25_000
