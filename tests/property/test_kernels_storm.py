"""Random products by our kernels, a few of those of ``make kernels-storm``."""

import pytest

import stretto as st
from stretto._engine.kernels import WITHOUT
from tests.property.kernels_storm import disagreement, draw_case, operands, results
from tests.property.storms import find_wrong_numbers

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


@pytest.mark.parametrize("seed", range(30))
def test_products_are_numpys(seed):
    case = draw_case(seed)
    arrays = operands(case)
    with st.enable_x64():
        said = disagreement(case, results(case, arrays), arrays)
    assert not said, f"{said}\n{case.words}"


def test_a_wrong_number_is_found():
    case = next(c for c in map(draw_case, range(100)) if not c.special and "float" in c.dtype)
    arrays = operands(case)
    with st.enable_x64():
        got = results(case, arrays)
        wrong = lambda numbers: disagreement(case, numbers, arrays)
        find_wrong_numbers(wrong, got, dict(enumerate(("values", "x'", "y'"))), 1)


def test_what_is_drawn():
    cases = [draw_case(seed) for seed in range(300)]
    narrow = {"bfloat16", "float16", "int8", "uint8", "int16"}
    assert {c.dtype for c in cases} == {"float32", "float64", "int32", *narrow}
    assert {c.dtype for c in cases if c.wide} == narrow
    assert {c.follows for c in cases} >= {"bias", "residual", "relu", "turned"}
    assert any(c.special for c in cases) and len({c.members for c in cases}) == 4
