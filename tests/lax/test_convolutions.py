"""Windows and local kernels against convolutions; the shapes that convolutions have."""

import numpy as np
import pytest

from stretto._engine.api.jit.jit import jit
from stretto._engine.ops.contract import tensordot
from stretto._engine.ops.convolution.general import conv_general_dilated, conv_transpose
from stretto._engine.ops.layout import move_axis
from stretto.lax import convolutions as lax

RNG = np.random.default_rng(0)
SETTINGS = [
    {"padding": "SAME"},
    {"padding": ((1, 2), (0, 1)), "lhs_dilation": (2, 1)},
    {"padding": ((1, 1), (-1, 2)), "rhs_dilation": (2, 1)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["same", "spread", "dilated"])
@pytest.mark.parametrize("names", [None, ("NHWC", "HWIO", "NHWC")], ids=["nchw", "nhwc"])
def test_patches_times_a_kernel_are_the_convolution(settings, names):
    x = RNG.normal(size=(2, 3, 6, 7)).astype(np.float32)
    kernel = RNG.normal(size=(4, 3, 2, 3)).astype(np.float32)
    flat = kernel.reshape(4, -1)
    if names:
        x, kernel = x.transpose(0, 2, 3, 1), kernel.transpose(2, 3, 1, 0)

    axis = 3 if names else 1

    def both(x, kernel, flat):
        options = {"dimension_numbers": names, **settings}
        windows = lax.conv_general_dilated_patches(x, (2, 3), (2, 1), **options)
        product = tensordot(windows, flat, ((axis,), (1,)))
        return move_axis(product, 3, axis), conv_general_dilated(x, kernel, (2, 1), **options)

    for run in (lambda f: f, jit):
        product, out = run(both)(x, kernel, flat)
        np.testing.assert_allclose(product, out, rtol=1e-5, atol=1e-5)


def test_equal_local_kernels_are_a_convolution():
    x = RNG.normal(size=(2, 5, 3)).astype(np.float32)
    kernel = RNG.normal(size=(2, 3, 4)).astype(np.float32)  # HIO
    names = ("NHC", "HIO", "NHC")
    # Input features outermost, then the window's elements, for each position.
    local = np.broadcast_to(kernel.transpose(1, 0, 2).reshape(1, 6, 4), (5, 6, 4))
    got = lax.conv_general_dilated_local(x, local, (1,), "SAME", (2,), dimension_numbers=names)
    out = conv_general_dilated(x, kernel, (1,), "SAME", dimension_numbers=names)
    np.testing.assert_allclose(got, out, rtol=1e-5, atol=1e-5)


def test_patches_copy_what_is_not_finite():
    x = np.float32([[[1, np.inf, np.nan]]])
    got = lax.conv_general_dilated_patches(x, (2,), (1,), "VALID", preferred_element_type="float16")
    np.testing.assert_array_equal(got, np.float16([[[1, np.inf], [np.inf, np.nan]]]))


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 0), (0, 2))], ids=str)
@pytest.mark.parametrize("names", [("NHWC", "HWIO", "NCHW"), ("NCHW", "OIHW", "NCHW")], ids=str)
def test_shapes_are_those_of_the_operations(padding, names):
    lhs = (2, 8, 7, 3) if names[0] == "NHWC" else (2, 3, 8, 7)
    rhs = (3, 2, 3, 4) if names[1] == "HWIO" else (4, 3, 3, 2)
    x, w = np.zeros(lhs, np.float32), np.zeros(rhs, np.float32)
    out = conv_general_dilated(x, w, (2, 1), padding, dimension_numbers=names)
    assert lax.conv_general_shape_tuple(lhs, rhs, (2, 1), padding, names) == out.shape
    out = conv_transpose(x, w, (2, 1), padding, dimension_numbers=names)
    assert lax.conv_transpose_shape_tuple(lhs, rhs, (2, 1), padding, names) == out.shape


def test_shapes_by_hand():
    assert lax.conv_general_permutations(("NHWC", "HWIO", "NCHW")) == (
        (0, 3, 1, 2),
        (3, 2, 0, 1),
        (0, 1, 2, 3),
    )
    assert lax.conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (2, 2), "VALID", 2) == (1, 4, 3, 3)
    assert lax.padtype_to_pads((5, 6), (2, 3), (2, 2), "SAME_LOWER") == [(1, 0), (1, 0)]
    ends = ((0, 0), (1, 1))
    assert lax.reduce_window_shape_tuple((8, 9), (2, 3), (2, 2), ends, (2, 1), (1, 2)) == (7, 4)


def test_the_padding_of_a_transposed_convolution():
    x, w = np.ones((1, 4, 1), np.float32), np.float32([1, 2, 3]).reshape(3, 1, 1)
    out = conv_transpose(x, w, (2,), ((1, 0),), use_consistent_padding=True)
    assert out.ravel().tolist() == [2, 4, 2, 4, 2, 4, 2, 1]


def test_refusals():
    x = np.ones((1, 1, 4, 4), np.float32)
    with pytest.raises(ValueError, match="must have 2 entries for lhs"):
        lax.conv_general_dilated_patches(x, (2,), (1, 1), "SAME")
    with pytest.raises(ValueError, match="is not defined with lhs_dilation"):
        lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "SAME", lhs_dilation=(2, 1))
    with pytest.raises(ValueError, match="rhs must have 4 features in and positions"):
        lax.conv_general_dilated_local(x, x, (1, 1), "SAME", (2, 2))
