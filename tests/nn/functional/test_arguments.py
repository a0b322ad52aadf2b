"""One number an axis, and inputs without a batch."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto.nn.functional.arguments import as_float, batched, numbers, per_axis, unbatched


def test_numbers():
    assert numbers(3, "f", "size") == (3,) and numbers([2, np.int64(4)], "f", "size") == (2, 4)
    assert per_axis(3, 2, "f", "size") == (3, 3)
    assert per_axis((3,), 2, "f", "size") == (3, 3)
    assert per_axis([1, 2], 2, "f", "size") == (1, 2)
    for given in ((1, 2, 3), 0, (1, -1), 1.5, "ab", None):
        with pytest.raises(ValueError, match="f: size must be an integer of at least 1, or 2"):
            per_axis(given, 2, "f", "size")
    assert per_axis(0, 2, "f", "padding", 0) == (0, 0)


def test_batches():
    x = snp.ones((3, 5))
    one, single = batched(x, 1, "f")
    assert one.shape == (1, 3, 5) and single
    assert unbatched(one, single).shape == (3, 5)
    many, single = batched(one, 1, "f")
    assert many is one and not single and unbatched(many, single) is one
    with pytest.raises(ValueError, match=r"f: input must have 3 axes .* or 2 .* got float32\[5\]"):
        batched(x[0], 1, "f")


def test_floats():
    assert as_float(3, "f").dtype == snp.float32
    assert as_float(snp.ones(2, snp.bfloat16), "f").dtype == snp.bfloat16
