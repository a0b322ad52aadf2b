"""Products with what follows them, as one operation."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.fused_product import FusedProduct
from stretto.laws import f32, f64, law

PLAIN = DotGeneral(((1,), (0,)))
TURNED = FusedProduct(PLAIN, (1, 0), True)

LAWS = [
    # A pass makes it after all transformations, of which it has no rules.
    law(
        FusedProduct,
        TURNED.__call__,
        *(kind(3, 4), kind(4, 5), kind(5, 3)),
        derivative=False,
        mapped=False,
    )
    for kind in (f32, f64)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def float32(*shape):
    return array_type(shape, np.dtype(np.float32))


def test_the_axes_are_in_order_and_what_is_added_has_the_type():
    turned = FusedProduct(PLAIN, (1, 0), False)
    assert turned.infer(float32(3, 4), float32(4, 5)) == float32(5, 3)
    assert turned.infer(float32(3, 4), float32(4, 5), float32(5, 3)) == float32(5, 3)
    with pytest.raises(TypeError, match=r"expected .*5,3.* to be added, got .*3,5"):
        turned.infer(float32(3, 4), float32(4, 5), float32(3, 5))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("adds", [False, True])
def test_the_reference_is_what_it_was_made_of(order, relu, adds):
    x = np.array([[1, -2], [0, 3], [np.nan, 1]], np.float32)
    y = np.array([[1, -1, 0], [2, 0, -1]], np.float32)
    op = FusedProduct(PLAIN, order, relu)
    added = [np.full((3, 3), -1, np.float32)] if adds else []
    expected = (x @ y).transpose(order) - (1 if adds else 0)
    if relu:
        expected = np.where(expected <= 0, 0, expected)
    got = op.reference(x, y, *added)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == np.float32
    values = [snp.asarray(a) for a in (x, y, *added)]
    np.testing.assert_array_equal(op(*values), expected)
    np.testing.assert_array_equal(op.written_out(*values), expected)


def test_its_work_is_that_of_the_product():
    types = float32(30, 40), float32(40, 50)
    work = PLAIN.work(types, (float32(30, 50),))
    assert FusedProduct(PLAIN, (0, 1), False).work(types, (float32(30, 50),)) == work
