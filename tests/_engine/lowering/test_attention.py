"""How attention's operands lie: views of parts and of other shapes, against NumPy's strides."""

import numpy as np
import pytest

from stretto._engine.lowering.attention import reshaped, sliced
from stretto._engine.lowering.products import View, row_major


def view_of(x):
    offset = x.__array_interface__["data"][0] - x.base.__array_interface__["data"][0]
    strides = [0 if n == 1 else s // x.itemsize for n, s in zip(x.shape, x.strides, strict=True)]
    return View(x.shape, tuple(strides), offset // x.itemsize)


BASE = np.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)[:]


@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        ((0, 1, 2, 3), (6, 24)),
        ((0, 1, 2, 3), (2, 3, 4, 2, 3)),
        ((1, 0, 2, 3), (3, 2, 24)),
        ((1, 0, 2, 3), (3, 1, 2, 4, 6)),
        ((3, 2, 1, 0), (2, 3, 2, 2, 3, 2)),
        ((2, 3, 0, 1), (24, 6)),
    ],
)
def test_reshapes_without_a_copy(axes, shape):
    turned = BASE.transpose(axes)
    got = turned.view()
    got.shape = shape  # raises where it needs a copy
    assert reshaped(view_of(turned), shape) == view_of(got)


@pytest.mark.parametrize(("axes", "shape"), [((1, 0, 2, 3), (6, 24)), ((0, 2, 1, 3), (2, 72))])
def test_what_needs_a_copy(axes, shape):
    assert reshaped(view_of(BASE.transpose(axes)), shape) is None


def test_slices():
    turned = BASE.transpose(2, 0, 1, 3)
    parts = [(1, 4, 2), (0, 2, 1), (1, 3, 1), (2, 6, 3)]
    got = turned[tuple([slice(*part) for part in parts])]
    assert sliced(view_of(turned), parts) == view_of(got)


def test_nothing():
    assert reshaped(row_major((0, 3)), (3, 0)) == row_major((3, 0))
