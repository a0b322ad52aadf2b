"""What a kernel is told of a convolution: sizes, strides and the way that it goes."""

import numpy as np
import pytest

import stretto as st
from stretto import lax
from stretto._engine.lowering.convolutions import as_product, geometry
from stretto._engine.ops.product_strides import View, row_major


def primitive(image, kernel, *args, **options):
    """Return the operation, and its types."""
    f = lambda x, w: lax.conv_general_dilated(x, w, *args, **options)
    (equation,) = st.make_graph(f)(np.zeros(image, "f"), np.zeros(kernel, "f")).equations
    return equation.primitive, *[v.type for v in (*equation.inputs, *equation.outputs)]


def numbers(op, lhs, rhs, out, window=None):
    found = geometry(op, row_major(lhs.shape), window or row_major(rhs.shape), row_major(out.shape))
    assert found is not None
    names = ["groups", "batch", "features", "outputs"]
    pairs = ["image", "window", "positions", "step", "gap", "low", "spread"]
    strides = ["lhs", "rhs", "out"]
    told = dict(zip(names, found[:4], strict=True))
    told |= {name: found[4 + 2 * i : 6 + 2 * i] for i, name in enumerate(pairs)}
    told |= {name: found[18 + 5 * i : 23 + 5 * i] for i, name in enumerate(strides)}
    return told | {"offset": found[33], "by_outputs": found[34]}


def test_an_image():
    told = numbers(*primitive((2, 6, 9, 8), (10, 3, 3, 2), (2, 1), [(1, 1), (0, 1)],
                              rhs_dilation=(1, 2), feature_group_count=2))  # fmt: skip
    assert told == {
        "groups": 2, "batch": 2, "features": 3, "outputs": 5,
        "image": (9, 8), "window": (3, 2), "positions": (5, 7),
        "step": (2, 1), "gap": (1, 2), "low": (1, 0), "spread": (1, 1),
        "lhs": (3 * 72, 6 * 72, 72, 8, 1), "rhs": (5 * 18, 18, 6, 2, 1),
        "out": (5 * 35, 10 * 35, 35, 7, 1), "offset": 0, "by_outputs": 0,
    }  # fmt: skip


def test_groups_of_the_batch():
    told = numbers(*primitive((4, 3, 9, 8), (10, 3, 9, 8), (1, 1), "SAME", batch_group_count=2))
    assert (told["groups"], told["batch"], told["outputs"]) == (2, 2, 5)
    assert told["lhs"] == (2 * 216, 216, 72, 8, 1)
    assert told["by_outputs"] == 0


def test_a_line_lies_along_rows():
    told = numbers(*primitive((2, 4, 50), (5, 4, 3), (2,), [(1, 0)]))
    assert told["image"] == (1, 50) and told["window"] == (1, 3)
    assert told["step"] == (1, 2) and told["low"] == (0, 1)


def test_columns_are_rows():
    told = numbers(*primitive((2, 4, 50, 1), (5, 4, 3, 1), (2, 1), [(1, 0), (0, 0)]))
    assert told["image"] == (1, 50) and told["window"] == (1, 3)
    assert told["step"] == (1, 2) and told["low"] == (0, 1)


def test_a_reversed_kernel():
    op, lhs, rhs, out = primitive((2, 4, 9, 9), (5, 4, 3, 3), (1, 1), "SAME")
    told = numbers(op, lhs, rhs, out, View(rhs.shape, (36, 9, -3, -1), 8))
    assert told["rhs"] == (5 * 36, 36, 9, -3, -1) and told["offset"] == 8


def test_large_windows_go_by_outputs():
    assert numbers(*primitive((2, 4, 9, 9), (5, 4, 8, 8), (1, 1), "VALID"))["by_outputs"] == 1


def test_features_side_by_side_are_left():
    op, lhs, rhs, out = primitive(
        (2, 9, 9, 4), (3, 3, 4, 5), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    views = [row_major(t.shape) for t in (lhs, rhs, out)]
    assert geometry(op, *views) is None


PRODUCTS = {
    # kernel, strides, padding, dimension numbers: the axes summed, and the order of the result
    "features first": ((5, 4, 1, 1), 1, "SAME", None, (((1,), (1,)), (0, 3, 1, 2, 4, 5))),
    "features last": ((1, 1, 4, 5), 1, "SAME", "NHWC", (((3,), (2,)), (0, 1, 2, 5, 3, 4))),
    "with a step": ((5, 4, 1, 1), 2, "SAME", None, None),
    "with a border": ((5, 4, 1, 1), 1, [(1, 1), (0, 0)], None, None),
    "a window": ((5, 4, 1, 3), 1, "SAME", None, None),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_windows_of_one_element_are_products(case):
    kernel, step, padding, dims, expected = PRODUCTS[case]
    image = (2, 9, 8, 4) if dims else (2, 4, 9, 8)
    names = (dims, "HWIO", dims) if dims else None
    op, lhs, rhs, out = primitive(image, kernel, (step, step), padding, dimension_numbers=names)
    found = as_product(op, rhs)
    if expected is None:
        assert found is None
        return
    assert found is not None
    summed, shared, order = found
    assert (summed, order) == expected and shared == ((), ())
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(lhs.shape), rng.standard_normal(rhs.shape)
    product = np.tensordot(x, w, summed).transpose(order).reshape(out.shape)
    np.testing.assert_allclose(product, op.reference(x, w), rtol=0, atol=1e-5)
