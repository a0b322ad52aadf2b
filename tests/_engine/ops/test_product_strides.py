"""How products lie in memory, as kernels are told."""

import numpy as np
import pytest

from stretto._engine.ops.product_strides import Geometry, View, geometry, row_major


def by_kernel(x, y, found, shape, added=None):
    """Compute what a kernel would from the numbers that it is passed."""
    numbers = list(found.numbers)
    m, n, k = numbers[:3]
    batch, of_a, of_b, of_c, of_added = (tuple(numbers[i : i + 3]) for i in range(3, 18, 3))
    a_m, a_k, b_k, b_n, c_m, added_m, relu = numbers[18:]
    a, b = (y, x) if found.swapped else (x, y)

    def laid(memory, shape, strides):
        size = memory.itemsize
        return np.lib.stride_tricks.as_strided(memory, shape, [s * size for s in strides])

    out = np.full(int(np.prod(shape)), np.nan)
    rows = laid(a.ravel(), (*batch, m, k), (*of_a, a_m, a_k))
    columns = laid(b.ravel(), (*batch, k, n), (*of_b, b_k, b_n))
    result = rows @ columns
    if added is not None:
        result = result + laid(added.ravel(), (*batch, m, n), (*of_added, added_m, 1))
    laid(out, (*batch, m, n), (*of_c, c_m, 1))[...] = np.maximum(result, 0) if relu else result
    return out.reshape(shape)


CASES = {
    "plain": ("ij,jk->ik", (3, 4), (4, 5)),
    "both turned": ("ji,kj->ik", (4, 3), (5, 4)),
    "vector on the right": ("ij,j->i", (30, 4), (4,)),
    "vector on the left": ("j,jk->k", (4,), (4, 5)),
    "batch": ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    "batch last": ("ijb,jkb->bik", (3, 4, 2), (4, 5, 2)),
    "shared right": ("bij,jk->bik", (2, 3, 4), (4, 5)),
    "shared left": ("ij,bjk->bik", (3, 4), (2, 4, 5)),
    "heads": ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    "two axes summed": ("ijk,jkl->il", (2, 3, 4), (3, 4, 5)),
    "two axes summed, in the other order": ("ijk,jkl->il", (2, 3, 4), (3, 4, 5)),
    "three axes of a batch": ("abcij,abcjk->abcik", (2, 2, 3, 3, 4), (2, 2, 3, 4, 5)),
}


def axes_of(spec):
    terms, out = spec.split("->")
    x, y = terms.split(",")
    shared = [c for c in x if c in y and c in out]
    summed = [c for c in x if c in y and c not in out]
    pairs = lambda letters: (tuple(map(x.index, letters)), tuple(map(y.index, letters)))
    product = [*shared, *[c for c in x if c not in y], *[c for c in y if c not in x]]
    return pairs(summed), pairs(shared), tuple([product.index(c) for c in out])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("follows", ["", "bias", "residual", "relu"])
def test_numbers_say_how_all_arrays_lie(name, follows):
    spec, x, y = CASES[name]
    random = np.random.default_rng(0)
    x, y = random.standard_normal(x), random.standard_normal(y)
    summed, shared, order = axes_of(spec)
    expected = np.einsum(spec, x, y)
    added = view = None
    if follows == "bias":
        added = random.standard_normal(expected.shape[-1])
        view = View(expected.shape, (*(0,) * (expected.ndim - 1), 1))
        expected = expected + added
    elif follows == "residual":
        added = random.standard_normal(expected.shape)
        view = row_major(expected.shape)
        expected = expected + added
    elif follows == "relu":
        expected = np.maximum(expected, 0)
    found = geometry(
        row_major(x.shape), row_major(y.shape), summed, shared, order, view, follows == "relu"
    )
    assert found is not None
    np.testing.assert_allclose(by_kernel(x, y, found, expected.shape, added), expected)
    assert found.work == np.prod(found.numbers[:3])


def test_axes_that_lie_side_by_side_are_one():
    found = geometry(row_major((2, 3, 4)), row_major((4, 5)), ((2,), (0,)), ((), ()))
    assert found.numbers[:6] == (6, 5, 4, 1, 1, 1)


def test_operands_may_be_views():
    x = View((3, 4), (1, 3))  # the transpose of a 4x3 array
    found = geometry(x, View((4, 5), (0, 1)), ((1,), (0,)), ((), ()))
    assert found.numbers[18:22] == (1, 3, 0, 1)


@pytest.mark.parametrize(
    ("x", "y", "summed", "shared"),
    [
        ((3, 0), (0, 5), ((1,), (0,)), ((), ())),
        ((0, 3), (3, 5), ((1,), (0,)), ((), ())),
        ((3, 1), (1, 5), ((1,), (0,)), ((), ())),
        ((4,), (4,), ((0,), (0,)), ((), ())),
        ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0)), ((), ())),
    ],
    ids=["nothing to sum", "no elements", "one term", "two vectors", "axes that do not join"],
)
def test_what_is_left_to_xla(x, y, summed, shared):
    assert geometry(row_major(x), row_major(y), summed, shared) is None


def test_what_is_added_must_lie_along_the_columns():
    for columns in (2, 5):
        x, y = row_major((3, 4)), row_major((4, columns))
        turned = View((3, columns), (1, 3))
        added = row_major((3, columns))
        assert geometry(x, y, ((1,), (0,)), ((), ()), (0, 1), turned) is None
        assert geometry(x, y, ((1,), (0,)), ((), ()), (0, 1), added) is not None


@pytest.mark.parametrize(("axes", "is_found"), [(3, True), (4, False)])
def test_axes_of_a_batch_that_do_not_join(axes, is_found):
    """Each lies the other way round in the second operand."""
    x = row_major((*[2] * axes, 3, 4))
    lead = row_major((4, 5, *[2] * axes))
    y = View((*[2] * axes, 4, 5), (*reversed(lead.strides[2:]), *lead.strides[:2]))
    shared = (tuple(range(axes)),) * 2
    found = geometry(x, y, ((axes + 1,), (axes,)), shared)
    assert (found is not None) == is_found


@pytest.mark.parametrize(
    ("x", "out", "sizes", "is_kernels"),
    [
        ("float32", "float32", (17, 16, 16), True),
        ("float32", "float32", (16, 16, 16), False),
        ("int8", "int32", (17, 16, 16), True),
        ("int8", "int32", (16, 16, 16), False),
        ("int8", "int32", (1, 3072, 768), True),
        ("int8", "int32", (100_000, 8, 2), False),
        ("int8", "int32", (100_000, 4, 4), False),
        ("int8", "int32", (1000, 1000, 4), True),
        ("int32", "int32", (1, 3072, 768), False),
        ("int32", "int32", (2, 3072, 768), True),
        ("int8", "int8", (64, 64, 64), True),
        ("int8", "int8", (64, 64, 63), False),
        ("int16", "int16", (7, 700, 700), False),
        ("int16", "int16", (1000, 1000, 31), False),
    ],
)
def test_which_products_are_quicker_by_a_kernel(x, out, sizes, is_kernels):
    found = Geometry(False, sizes, int(np.prod(sizes)))
    assert found.is_quicker(np.dtype(x), np.dtype(out)) == is_kernels
