"""Random work along an axis by our kernels, a few cases of ``make along-storm``."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.kernels import WITHOUT
from tests.property.along_storm import disagreement, draw_case, operands, results
from tests.property.storms import find_wrong_numbers

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


@pytest.mark.parametrize("seed", range(24))
def test_values_are_numpys(seed):
    case = draw_case(seed)
    arrays = operands(case)
    with st.enable_x64(), st.config(interpret_small=False):
        said = disagreement(case, results(case, arrays), arrays)
    assert not said, f"{said}\n{case.words}"


def test_a_wrong_number_is_found():
    ops = ("cumsum", "cumprod")
    tame = (c for c in map(draw_case, range(300)) if c.op in ops and c.members is None)
    case = next(c for c in tame if not c.special and c.dtype == "float32" and np.prod(c.shape) > 9)
    arrays = operands(case)
    with st.config(interpret_small=False):
        got = results(case, arrays)
    wrong = lambda numbers: disagreement(case, numbers, arrays)
    find_wrong_numbers(wrong, got, {0: "value 0", 1: "slope"}, 100)
    other = [*got[:-1], got[-1] + np.float32(1)]
    assert wrong(other) == "value 0: a member has other bits alone"
