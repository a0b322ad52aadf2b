"""The product of a matrix with the features of an image, by the place where they lie.

``op`` is a ``ConvGeneralDilated``, for its precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.axes import relaid
from stretto._engine.ops.layout import move_axis, reshape, transpose
from stretto._engine.ops.shape import rev

FEWEST_COLUMNS = 64
"""The fewest positions of an example that make a matrix of their own: fewer leave lanes idle."""


def along_features(op: Any, matrix: Any, summed: int, image: Any, axis: int) -> Any:
    """The image, batch first, with a matrix applied along the features, which lie at ``axis``.

    The matrix is summed along its axis ``summed``; the other one is the output features.

    Features last: one product of rows. Features before the positions: a product for each example,
    so that nothing is moved, or where the positions are few one product of columns; of rows if the
    matrix would have to be turned, which is the larger one then.
    """
    terms, outputs = matrix.shape[summed], matrix.shape[1 - summed]
    dot = lambda contracted, batch: DotGeneral(contracted, batch, op.precision, op.preferred)
    if axis == image.ndim - 1:
        rows = reshape(image, (image.size // terms, terms))
        matrix = matrix if summed == 0 else transpose(matrix, (1, 0))
        result = dot(((1,), (0,)), ((), ()))(rows, matrix)
        return reshape(result, (*image.shape[:-1], outputs))
    examples, positions = image.shape[0], math.prod(image.shape[2:])
    if positions >= FEWEST_COLUMNS or examples == 1:
        columns = reshape(image, (examples, terms, positions))
        matrices = broadcast_in_dim(matrix, (examples, *matrix.shape), (1, 2))
        result = dot(((1 + summed,), (1,)), ((0,), (0,)))(matrices, columns)
        return reshape(result, (examples, outputs, *image.shape[2:]))
    if summed == 0:
        last = image.ndim - 1
        return move_axis(along_features(op, matrix, 0, move_axis(image, 1, last), last), last, 1)
    columns = reshape(move_axis(image, 1, 0), (terms, examples * positions))
    result = dot(((1,), (0,)), ((), ()))(matrix, columns)
    return move_axis(reshape(result, (outputs, examples, *image.shape[2:])), 1, 0)


def as_matrix(op: Any, rhs: Any, reverse: bool = False) -> tuple[Any, int]:
    """The kernel as a matrix, and its axis of the input features, to apply ``along_features``.

    Along the other axis are the window's elements, perhaps in reverse, with the output features
    inside. The axes of features stay in the order that they have in the kernel.
    """
    outputs, inputs, *window = op.dims.rhs_spec
    first, size = inputs < outputs, rhs.shape[inputs]
    kernel = transpose(rhs, (inputs, *window, outputs) if first else (*window, outputs, inputs))
    if reverse:
        kernel = rev(kernel, tuple(range(first, first + len(window))))
    shape = (size, rhs.size // size)
    return (reshape(kernel, shape), 0) if first else (reshape(kernel, shape[::-1]), 1)


def batch_first(op: Any, image: Any, axis: int) -> tuple[Any, list[int]]:
    """The image with its batch first and its features at ``axis``, and where its positions lie."""
    batch, features, *spatial = op.dims.lhs_spec
    order = [batch, *spatial]
    order.insert(axis, features)
    places = [a for a in range(image.ndim) if a not in (0, axis)]
    return transpose(image, tuple(order)), places


def as_output(op: Any, result: Any, axis: int, places: Sequence[int]) -> Any:
    """A result in that order, in the order of the convolution's output."""
    return relaid(result, (0, axis, *places), op.dims.out_spec)
