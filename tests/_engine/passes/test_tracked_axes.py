"""Axes followed through views and products."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.passes.tracked_axes import (
    Unlike,
    fresh,
    is_repeated,
    is_view,
    leaves_of,
    of_operand,
    of_result,
    other_side,
    product_axes,
    regrouped,
    sides,
)


def equation(f, *shapes):
    """The last operation of a function."""
    return make_graph(f)(*[np.ones(shape, np.float32) for shape in shapes]).equations[-1]


def sizes(dims):
    return [[axis.size for axis in group] for group in dims]


def test_reshapes_join_and_split():
    dims = fresh((2, 1, 6, 4))
    assert sizes(dims) == [[2], [], [6], [4]]
    joined = regrouped(dims, (12, 4))
    assert sizes(joined) == [[2, 6], [4]]
    split = regrouped(dims, (2, 3, 8))
    assert sizes(split) == [[2], [3], [2, 4]]
    assert leaves_of(dims) == leaves_of(split) == leaves_of(joined)  # also in what was split before
    with pytest.raises(Unlike):
        regrouped(fresh((4, 6)), (3, 8))
    with pytest.raises(Unlike):
        regrouped(fresh((6,)), (3, 2), may_split=False)


def test_views_there_and_back():
    for f in (lambda x: x.transpose(2, 0, 1), lambda x: x.reshape(2, 12)):
        e = equation(f, (2, 3, 4))
        assert is_view(e)
        dims = fresh((2, 3, 4))
        assert of_operand(e, of_result(e, dims)) == dims


def test_broadcasts():
    e = equation(lambda x: snp.broadcast_to(x, (5, 3, 4)), (3, 1))
    assert is_repeated(e) and not is_view(e)
    dims = fresh((5, 3, 4))
    assert of_operand(e, dims) == [dims[1], []]


def test_products():
    e = equation(snp.matmul, (7, 3, 4), (7, 4, 5))
    out = fresh((7, 3, 5))
    x, y, _, (summed,) = product_axes(e, out=out)
    assert x == [out[0], out[1], [summed]]
    assert y == [out[0], [summed], out[2]]
    other, dims, result, (same,) = other_side(e, e.inputs[0], x)
    assert other is e.inputs[1] and same is summed
    assert result[:2] == out[:2] and dims[2] == result[2]
    rows, keys, _ = sides(e, out, out[2][0])
    assert [rows[0], keys[0]] == list(e.inputs)
    rows, keys, _ = sides(e, out, out[1][0])
    assert [keys[0], rows[0]] == list(e.inputs)
