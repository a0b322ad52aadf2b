"""Operands of convolutions, relaid, cut and multiplied, against loops over groups."""

import itertools

import numpy as np
import pytest

from stretto._engine.api.graph import make_graph
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import (
    ConvDimensionNumbers,
    along_features,
    by_group,
    conv_dimension_numbers,
    cut,
    features_last,
    merge,
    merge_inside,
    order_of,
    relaid,
    split_axis,
    spread,
    with_features_last,
)
from tests._engine.ops.convolution.cases import check

X = np.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)


def test_split():
    np.testing.assert_array_equal(split_axis(as_value(X), 3, 2), X.reshape(2, 3, 4, 2, 3))
    np.testing.assert_array_equal(split_axis(as_value(X), 0, 1), X[None])


@pytest.mark.parametrize("source", range(4))
@pytest.mark.parametrize("target", range(3))
def test_the_merged_axis_is_the_outer_one(source, target):
    got = np.asarray(merge(as_value(X), source, target))
    rows = list(np.moveaxis(X, source, 0))
    np.testing.assert_array_equal(got, np.concatenate(rows, target))


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_within_each_group(groups):
    got = np.asarray(merge_inside(as_value(X), 0, 2, groups))
    rows = list(X)  # the target axis has 6 elements
    parts = [np.split(row, groups, 2) for row in rows]
    want = np.concatenate([part[g] for g in range(groups) for part in parts], 2)
    np.testing.assert_array_equal(got, want)


def test_a_split_undoes_a_merge():
    merged = merge(as_value(X), 0, 1)
    np.testing.assert_array_equal(split_axis(merged, 1, 2), np.moveaxis(X, 0, 1))


@pytest.mark.parametrize("source", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_all_axes_moved(source):
    for target in itertools.permutations(range(4)):
        want = np.moveaxis(X, source, target)
        np.testing.assert_array_equal(relaid(as_value(X), source, target), want)
        assert tuple(X.shape[a] for a in order_of(source, target)) == want.shape


FIRST = ConvDimensionNumbers(*(((0, 1, 2),) * 3))


def test_padding_and_zeros_between():
    x = as_value(np.arange(1.0, 4.0, dtype=np.float32).reshape(1, 1, 3))
    op = ConvGeneralDilated((1,), ((1, -1),), (2,), (1,), FIRST)
    np.testing.assert_array_equal(spread(op, x), [[[0, 1, 0, 2, 0]]])


def test_nothing_to_add():
    x = as_value(np.ones((1, 1, 3), np.float32))
    assert spread(ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), FIRST), x) is x


def test_slices():
    x = as_value(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4))
    np.testing.assert_array_equal(
        cut(x, [2, 0], [1, 1], [2, 1], [2, 1]), np.asarray(x)[1:, :, 1::2]
    )
    assert cut(x, [1], [0], [0], [1]).shape == (2, 0, 4)


@pytest.mark.parametrize("settings", [{}, {"hidden": False}, {"hidden": True}])
def test_slices_are_hidden_where_it_is_asked_for(settings):
    graph = make_graph(lambda x: cut(x, [0], [1], [1], [1], **settings))(np.ones((3, 2)))
    (e,) = graph.equations
    assert e.primitive.hidden == settings.get("hidden", False)


def numbers(seed, *shape):
    random = np.random.default_rng(seed)
    return as_value(random.integers(-4, 5, shape).astype(np.float32))


def convolution(layout, feature_groups=1, batch_groups=1):
    dims = conv_dimension_numbers((1,) * 4, (1,) * 4, layout)
    return ConvGeneralDilated(
        (1, 2), ((1, 0), (2, 1)), (2, 1), (1, 2), dims, feature_groups, batch_groups
    )


CASES = {
    "first": (("NCHW", "OIHW", "NCHW"), (4, 6, 4, 5), (6, 6, 2, 2), 1, 1),
    "mixed": (("HNWC", "WHIO", "CWNH"), (4, 3, 5, 2), (2, 2, 2, 6), 1, 1),
    "feature groups": (("HNWC", "WHIO", "CWNH"), (4, 3, 5, 6), (2, 2, 2, 6), 3, 1),
    "batch groups": (("NCHW", "OIHW", "NCHW"), (4, 3, 4, 5), (6, 3, 2, 2), 1, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_turned(name):
    layout, lhs, rhs, *groups = CASES[name]
    op, x, y = convolution(layout, *groups), numbers(0, *lhs), numbers(1, *rhs)
    check(with_features_last, op, x, y)


@pytest.mark.parametrize("name", CASES)
def test_by_group(name):
    layout, lhs, rhs, *groups = CASES[name]
    op, x, y = convolution(layout, *groups), numbers(0, *lhs), numbers(1, *rhs)
    np.testing.assert_array_equal(by_group(op, x, y), op(x, y))


def test_features_last():
    named = conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "HWIO", "NHWC"))
    assert features_last(4) == named
    assert features_last(2) == conv_dimension_numbers((1,) * 2, (1,) * 2, ("NC", "IO", "NC"))


OP = ConvGeneralDilated((1,), ((0, 0),), (1,), (1,), ConvDimensionNumbers(*(((0, 1, 2),) * 3)))


@pytest.mark.parametrize("axis", ["first", "last"])
@pytest.mark.parametrize("positions", [(), (3,), (9, 8), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("examples", [1, 5])
@pytest.mark.parametrize("summed", [0, 1])
def test_is_the_sum_over_features(examples, positions, axis, summed):
    random = np.random.default_rng(0)
    matrix = random.integers(-4, 5, (7, 6)).astype(np.float32)
    shape = (examples, 6, *positions) if axis == "first" else (examples, *positions, 6)
    image = random.integers(-4, 5, shape).astype(np.float32)
    place = 1 if axis == "first" else image.ndim - 1
    got = along_features(
        OP, as_value(matrix if summed else matrix.T.copy()), summed, as_value(image), place
    )
    want = np.moveaxis(np.tensordot(matrix, image, (1, place)), 0, place)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("examples", "positions", "each"),
    [(2, (8, 8), True), (2, (7, 9), False), (1, (3,), True), (2, (3,), False)],
    ids=str,
)
def test_examples_of_many_positions_have_a_product_each(examples, positions, each):
    """With fewer than 64 positions they share one, unless there is one example."""
    for summed in (0, 1):
        program = make_graph(lambda m, x, summed=summed: along_features(OP, m, summed, x, 1))(
            np.ones((6, 6), np.float32), np.ones((examples, 6, *positions), np.float32)
        )
        (product,) = [e.primitive for e in program.equations if e.primitive.name == "dot_general"]
        assert product.shared == (((0,), (0,)) if each else ((), ()))
