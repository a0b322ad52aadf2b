"""Arguments of laws: what is drawn, and how it is shown."""

import ml_dtypes
import numpy as np
import pytest

from stretto import laws
from stretto.laws import TypeOf, b1, f64, i8, u32


def test_draws_are_within_and_repeat():
    kind = f64(1000).within(0.25, 0.5)
    one, two = (kind.draw(np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert one.min() >= 0.25 and one.max() <= 0.5


def test_integers_are_whole_and_unsigned_ones_not_negative():
    rng = np.random.default_rng(0)
    assert i8(99).draw(rng).dtype == np.int8
    assert u32(99).within(-5, 5).draw(rng).min() == 0
    assert set(b1(99).draw(rng).tolist()) == {False, True}


@pytest.mark.parametrize(
    "short, name",
    [("bf16", "bfloat16"), ("c128", "complex128"), ("f16", "float16"), ("i32", "int32")],
)
def test_short_names_make_arguments_of_their_dtype(short, name):
    made = getattr(laws, short)(2, 3)
    assert made == TypeOf(np.dtype(getattr(ml_dtypes, name, name)), (2, 3))
    assert str(made) == f"{name}[2, 3]"
    assert made.draw(np.random.default_rng(0)).dtype == made.dtype
