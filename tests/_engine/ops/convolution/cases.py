"""Convolutions of any geometry, and what any form of one must give."""

import hypothesis.strategies as hs
import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers, conv_dimension_numbers

GROUPS = {"none": [(1, 1)], "features": [(2, 1), (3, 1)], "batch": [(1, 2), (1, 3)]}
"""By what they divide, numbers of groups of features and of the batch."""


def whole(seed, shape, dtype=np.float32):
    """Small whole numbers, whose sums of products are exact."""
    return as_value(np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype))


def check(form, op, x, y):
    """Assert that the form gives what the definition does."""
    want = op(x, y)
    np.testing.assert_array_equal(form(op, x, y, want.type), want)


def form_of(image, kernel, groups=1, names=None):
    """Return the formulation of a plain convolution of arrays of these shapes."""
    ones = (1,) * (len(image) - 2)
    padding, dims = ((0, 0),) * len(ones), conv_dimension_numbers(image, kernel, names)
    op = ConvGeneralDilated(ones, padding, ones, ones, dims, groups)
    x, w = (array_type(shape, np.dtype(np.float32)) for shape in (image, kernel))
    return formulation(op, x, w, op.infer(x, w))


@hs.composite
def convolutions(draw, grouped=("none",), in_gaps=False):
    """An operation and its operands, of 1 to 3 spatial axes in any layout.

    ``grouped`` are the kinds of ``GROUPS`` to choose from. ``in_gaps``: the kernel fits into the
    gaps of the image, and windows are neither dilated nor strided.
    """
    n = draw(hs.integers(1, 3))
    each = lambda least, most: tuple(draw(hs.integers(least, most)) for _ in range(n))
    order = hs.permutations(range(n + 2))
    dims = ConvDimensionNumbers(*(tuple(draw(order)) for _ in range(3)))
    image, window = each(1, 17 if n == 1 else 5), each(1, 5 if n == 1 else 3)
    strides = dilations = (1,) * n
    if in_gaps:
        spread = tuple(max(2, k + more) for k, more in zip(window, each(0, 2), strict=True))
    else:
        strides, dilations, spread = each(1, 3), each(1, 3), each(1, 2)
    padding = []
    for size, k, d, s in zip(image, window, dilations, spread, strict=True):
        low = draw(hs.integers(-1, 3))
        least = (k - 1) * d - (size - 1) * s - low  # at least one window fits
        padding.append((low, draw(hs.integers(max(-1, least), max(2, least)))))
    batch, inputs, outputs = (draw(hs.integers(1, 3)) for _ in range(3))
    features, batches = draw(hs.sampled_from([g for kind in grouped for g in GROUPS[kind]]))
    place = lambda shape, spec: tuple(shape[spec.index(a)] for a in range(len(shape)))
    lhs = place((batches * batch, features * inputs, *image), dims.lhs_spec)
    rhs = place((features * batches * outputs, inputs, *window), dims.rhs_spec)
    op = ConvGeneralDilated(strides, tuple(padding), spread, dilations, dims, features, batches)
    return op, whole(0, lhs), whole(1, rhs)
