"""Where windows lie: axes by name, padding by name, sizes."""

import itertools

import pytest

from stretto._engine.ops.convolution.geometry import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    dilated,
    letters,
    pads,
    transposed_pad,
)


def test_extents():
    assert [dilated(n, 3) for n in (0, 1, 2, 5)] == [0, 1, 4, 13]
    assert [dilated(n, 1) for n in range(4)] == list(range(4))


def test_axes_by_name():
    numbers = conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "HWIO", "CWNH"))
    assert numbers == ((0, 3, 1, 2), (3, 2, 0, 1), (2, 0, 3, 1))
    assert conv_dimension_numbers((1, 1, 1), (1, 1, 1), numbers) is numbers
    plain = conv_dimension_numbers((1, 1, 1), (1, 1, 1), None)
    assert plain == ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
    # Spatial letters are in the kernel's order, whatever they are.
    turned = conv_dimension_numbers((1,) * 4, (1,) * 4, ("NCxy", "OIyx", "NCxy"))
    assert turned == ((0, 1, 3, 2), (0, 1, 2, 3), (0, 1, 3, 2))


@pytest.mark.parametrize(
    "names",
    [
        ("NHWC", "HWIO"),
        ("NHWC", "HWIO", "NHW"),
        ("NHWC", "HWIO", "NHWD"),
        ("NHHC", "HWIO", "NHWC"),
        ("NHWC", "HWOO", "NHWC"),
        ("OHWI", "HWIO", "NHWC"),
        (1, 2, 3),
        "NHWC",
    ],
)
def test_names_that_do_not_go_together(names):
    with pytest.raises(
        ValueError, match="conv_dimension_numbers: dimension_numbers must be three strings of 4"
    ):
        conv_dimension_numbers((1,) * 4, (1,) * 4, names)


def test_ranks_that_differ():
    with pytest.raises(ValueError, match=r"ranks differ, shapes \(1, 2\) and \(3,\)"):
        conv_dimension_numbers([1, 2], [3], None)


def test_letters():
    assert letters((0, 3, 1, 2), "bf") == "[b, 0, 1, f]"
    assert letters((1, 0), "oi") == "[i, o]"


def test_padding_by_name():
    cases = itertools.product(range(1, 9), range(1, 5), range(1, 4))
    for n, k, s in cases:
        (low, high), (low_, high_) = (
            pads(name, [n], [k], [s], "conv")[0] for name in ("SAME", "same_lower")
        )
        # As many outputs as strides begin in the input; the odd element after, or before.
        assert (n + low + high - k) // s + 1 == -(-n // s)
        assert (low_, high_) == (high, low) and 0 <= high - low <= 1
        assert pads("valid", [n], [k], [s], "conv") == ((0, 0),)


def test_padding_in_pairs_and_refusals():
    assert pads([(1, 2), (-1, 0)], [5, 5], [3, 3], [1, 1], "conv") == ((1, 2), (-1, 0))
    with pytest.raises(ValueError, match=r"conv: padding must be 'SAME', .*; got 'FULL'"):
        pads("FULL", [5], [3], [1], "conv")
    with pytest.raises(TypeError, match="conv: padding"):
        pads(3, [5], [3], [1], "conv")


def test_padding_of_transposed_convolutions_gives_back_the_sizes():
    for n, k, s in itertools.product(range(1, 6), range(1, 6), range(1, 6)):
        for name, size in {"SAME": n * s, "VALID": (n - 1) * s + max(k, s)}.items():
            low, high = transposed_pad(k, s, name)
            assert dilated(n, s) + low + high - k + 1 == size
            assert low <= k - 1  # else outputs would see nothing at all
    with pytest.raises(ValueError, match="conv_transpose: padding must be"):
        transposed_pad(3, 1, "FULL")


@pytest.mark.parametrize("numbers", [3, [1, 2, 3], "NCHW"])
def test_dimension_numbers_must_be_three_strings(numbers):
    with pytest.raises(ValueError, match="conv_dimension_numbers: dimension_numbers must be three"):
        conv_dimension_numbers((1, 1, 4), (1, 1, 2), numbers)


def test_shapes_must_be_of_one_rank():
    with pytest.raises(ValueError, match=r"conv_dimension_numbers: ranks differ, shapes \(3,\)"):
        conv_dimension_numbers(3, (1, 1, 2), None)
    with pytest.raises(TypeError, match="conv_dimension_numbers: lhs_shape"):
        conv_dimension_numbers("abc", (1, 1, 2), None)
