from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.numpy.einsums import parse

X, Y = snp.ones((2, 3)), snp.ones((3, 4))


def test_both_forms_say_the_same():
    _, text = parse("einsum", ("ij, jk -> ik", X, Y))
    _, lists = parse("einsum", (X, [5, 7], Y, [7, 9], [5, 9]))
    assert text == lists
    assert text.inputs == ((0, 1), (1, 2))
    assert text.output == (0, 2)
    assert text.sizes == {0: 2, 1: 3, 2: 4}


def test_an_implicit_output_is_sorted_after_the_ellipsis():
    _, notation = parse("einsum", ("b...a,a", snp.ones((2, 5, 3)), snp.ones(3)))
    assert notation.output == (0, 1)  # the axis of the ellipsis, then b
    _, notation = parse("einsum", ("ba", X))
    assert notation.output == (1, 0)


def test_ellipses_align_from_the_last_axis():
    _, notation = parse("einsum", ("...,...->...", snp.ones((2, 1)), snp.ones(3)))
    assert notation.inputs == ((0, 1), (1,))
    assert notation.shapes == ((2, 3), (3,))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ij,jk", X), "for 2 operands, got 1"),
        (("i$", X), "must be letters"),
        (("ij->i->j", X), "must be letters"),
        (("..i", X), "must be letters"),
        (("ij->ik", X), "no operand has the output label 'k'"),
        (("ij->ii", X), "names a label twice"),
        (("i", X), "for 1 axes, but it is float32"),
        (("ijk...", X), "for 3 or more axes"),
        (("ij,jk", X, X), "label 'j' has size 3, and size 2 in operand 1"),
        (("ii", X), r"operand 0, .* has the label 'i' twice"),
        ((X, "ij"), "labels must be a list, of integers"),
        ((X, [0, 1], Y), "labels must be a list, of integers"),
        ((X,), "a string of subscripts"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(arguments, words):
    with pytest.raises(ValueError, match=words):
        parse("einsum", arguments)


@pytest.mark.parametrize(
    "a, b, c", [(0, 1, 2), ("row", "k", "column"), ((0, 1), "k", 2), (object(), None, snp.ones)]
)
def test_labels_are_any_hashable_values(a, b, c):
    out = snp.einsum(X, [a, b], snp.ones((3, 4)), [b, c], [c, a])
    np.testing.assert_array_equal(out, np.full((4, 2), 3.0))
    batched = snp.einsum(snp.ones((5, 2, 3)), [..., a, b], snp.ones((3, 4)), [b, c], [..., a, c])
    assert batched.shape == (5, 2, 4)


def test_labels_without_an_order_need_an_output():
    a, b = object(), object()
    assert float(snp.einsum(X, [a, b], [])) == X.size
    with pytest.raises(TypeError, match="have none; give the labels of the result"):
        snp.einsum(X, [a, b])
    assert snp.einsum(X, ["z", "b"]).shape == (3, 2)  # in their order
    with pytest.raises(TypeError, match="labels must be hashable"):
        snp.einsum(X, [[], 0])


def test_digits_are_labels():
    x, y = snp.arange(6.0).reshape(2, 3), snp.ones((3, 1))
    np.testing.assert_array_equal(snp.einsum("i0,01->i1", x, y), x @ y)
