"""Up to which sizes each form of a convolution serves, and from where on the next."""

import pytest

from tests._engine.ops.convolution.cases import form_of

LAST, KERNEL_FIRST = ("CHWN", "IHWO", "NCHW"), ("NCHW", "OIHW", "CNHW")
XLA, WINDOWS, TOGETHER = "XLA's convolution", "windows in one product", "positions in one product"
BORDERS = {
    # what is counted: image and kernel where the form still serves, and with one more or one less
    "output features": ("elements, then sums over windows", XLA,
        ((2, 32, 9, 9), (4, 32, 3, 3)), ((2, 32, 9, 9), (5, 32, 3, 3))),
    "input features": ("elements, then sums over windows", XLA,
        ((2, 16, 9, 9), (3, 16, 3, 3)), ((2, 15, 9, 9), (3, 15, 3, 3))),
    "elements of a window": ("elements, then sums over windows", XLA,
        ((2, 32, 20, 20), (3, 32, 8, 8)), ((2, 32, 20, 20), (3, 32, 5, 13))),
    "copies of a plane": ("planes of a volume", XLA,
        ((2, 64, 16, 20, 20), (8, 64, 9, 3, 3)), ((2, 64, 17, 20, 20), (8, 64, 9, 3, 3))),
    "planes of a window": ("planes of a volume", XLA,
        ((2, 64, 71, 20, 20), (8, 64, 64, 3, 3)), ((2, 64, 72, 20, 20), (8, 64, 65, 3, 3))),
    "positions": (TOGETHER, XLA,
        ((2, 5, 14, 14), (4, 5, 8, 8)), ((2, 5, 57, 8), (8, 5, 8, 8))),
    "elements of all positions": (TOGETHER, XLA,
        ((1, 5, 513, 513), (4, 5, 512, 512)), ((1, 5, 513, 514), (4, 5, 512, 513))),
    "examples": (TOGETHER, XLA,
        ((2, 6, 14, 14), (8, 6, 8, 8)), ((2, 7, 14, 14), (8, 7, 8, 8))),
    "examples, features last": (TOGETHER, XLA,
        ((3, 14, 14, 2), (3, 8, 8, 8), 1, LAST), ((4, 14, 14, 2), (4, 8, 8, 8), 1, LAST)),
    "elements of a gradient's windows": (TOGETHER, XLA,
        ((2048, 8, 6, 9), (256, 8, 5, 8), 1, KERNEL_FIRST),
        ((2049, 8, 6, 9), (256, 8, 5, 8), 1, KERNEL_FIRST)),
    "elements of a gradient": (TOGETHER, XLA,
        ((128, 8, 6, 6), (256, 8, 5, 5), 1, KERNEL_FIRST),
        ((128, 8, 6, 6), (255, 8, 5, 5), 1, KERNEL_FIRST)),
    "rows of a group": ("products by position", "groups written out",
        ((3, 10, 9, 9), (6, 5, 8, 8), 2), ((2, 10, 9, 9), (6, 5, 8, 8), 2)),
    "terms of a sum": ("sum of shifted slices", XLA,
        ((2, 2, 20, 50), (2, 1, 8, 16), 2), ((2, 2, 20, 50), (2, 1, 3, 43), 2)),
    "features of a group": ("sum of shifted slices", "groups written out",
        ((2, 8, 9, 9), (4, 4, 3, 3), 2), ((2, 10, 9, 9), (4, 5, 3, 3), 2)),
    "slices of windows": (WINDOWS, XLA,
        ((1, 70, 18, 27), (264, 70, 8, 16)), ((1, 70, 13, 54), (264, 70, 3, 43))),
    "terms of a window": (WINDOWS, XLA,
        ((2, 1, 20, 20), (8, 1, 8, 8)), ((2, 1, 20, 20), (8, 1, 5, 13))),
    "elements of windows": (WINDOWS, XLA,
        ((1, 1, 513, 515), (8, 1, 2, 4)), ((1, 1, 514, 515), (8, 1, 2, 4))),
    "groups": ("groups written out", XLA,
        ((1, 512, 5, 5), (64, 8, 3, 3), 64), ((1, 520, 5, 5), (65, 8, 3, 3), 65)),
}  # fmt: skip


@pytest.mark.parametrize("what", BORDERS)
def test_up_to_which_sizes_a_form_serves(what):
    inside, outside, last, beyond = BORDERS[what]
    assert form_of(*last).name == inside
    assert form_of(*beyond).name == outside
