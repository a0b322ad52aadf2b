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


@pytest.mark.parametrize(
    ("picture", "path"),
    [
        (bars(np.repeat([0.0, 1.0], [4, 2]), 2),
         "M0.0 48v-47.0h102.0V48zM120.0 48v-23.5h102.0V48z"),
        (bars(np.repeat([0.0, 1.0], [1000, 1]), 2),
         "M0.0 48v-47.0h102.0V48zM120.0 48v-1.0h102.0V48z"),
        (bars(np.array([0.0, 3.0]), 3), "M0.0 48v-47.0h68.0V48zM160.0 48v-47.0h68.0V48z"),
        (bars(np.array([7.0]), 4), "M120.0 48v-47.0h51.0V48z"),
        (curve(np.array([5.0])), "M120.0 24.0h0"),
        (curve(np.array([5.0, 5.0])), "M2.0 24.0h0L238.0 24.0"),
        (curve(np.array([np.nan, 5.0, 9.0])), "M120.0 46.0h0L238.0 2.0"),
        (curve(np.array([-1.7e308, 1.7e308])), "M2.0 46.0h0L238.0 2.0"),
    ],
)  # fmt: skip
def test_paths_fill_the_picture(picture, path):
    """All is 240 by 48; a range with any value at all has a bar of 1."""
    assert re.search(' d="([^"]*)"', picture)[1] == path
    assert 'width="240" height="48" viewBox="0 0 240 48"' in picture


@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 1), (12, 12)), ((1, 3), (36, 12)), ((2, 30), (240, 16)), ((20, 2), (16, 160)),
     ((13, 20), (240, 156)), ((14, 20), (229, 160)), ((64, 64), (160, 160)),
     ((1, 4096), (240, 6)), ((4096, 1), (6, 160))],
)  # fmt: skip
def test_elements_are_squares_as_far_as_there_is_room(shape, size):
    html = matrix(np.zeros(shape))
    assert tuple([int(n) for n in re.findall('(?:width|height)="([0-9]+)"', html)]) == size


def test_a_matrix_of_equal_or_of_no_finite_elements():
    """Equal ones have the colour in the middle."""
    middle = [38, 144, 134]
    assert decoded(page_of(matrix(np.full((1, 2), 7.0)))).tolist() == [[middle, middle]]
    assert decoded(page_of(matrix(np.array([[np.nan, np.inf]])))).tolist() == [[[150] * 3] * 2]


def test_sketches_have_eight_levels():
    values = np.repeat(np.arange(9.0), [0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert (
        sketch(values, 8) == "▂▃▄▅▆▇██" and sketch(np.repeat([0.0, 1, 2], [100, 1, 0]), 2) == "█▂"
    )
    assert sketch(np.array([0.0, 0.0, 3.0]), 3) == "█▁▅"
