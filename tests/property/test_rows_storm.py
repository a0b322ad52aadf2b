"""Random programs along rows by our kernel, a few of those of ``make rows-storm``."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.kernels import WITHOUT
from tests.property.rows_storm import disagreement, draw_case, expected, operands, results, values
from tests.property.storms import find_wrong_numbers

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


@pytest.mark.parametrize("seed", range(12))
def test_programs_are_numpys(seed):
    case = draw_case(seed)
    arrays = operands(case)
    with st.enable_x64():
        said = disagreement(case, results(case, arrays), arrays)
    assert not said, f"{said}\n{case.words}"


def test_a_wrong_number_is_found():
    tame = (c for c in map(draw_case, range(100)) if not c.special)
    case = next(c for c in tame if expected(c, operands(c))[1] < 100)
    arrays = operands(case)
    with st.enable_x64():
        got = results(case, arrays)
        wrong = lambda numbers: disagreement(case, numbers, arrays)
        find_wrong_numbers(wrong, got, {0: "value 0", -1: "gradient"}, 100)


def test_most_have_a_call_of_the_kernel():
    calls = []
    for seed in range(40):
        case = draw_case(seed)._replace(members=False)
        with st.enable_x64():
            report = st.explain(lambda *a, case=case: values(case, snp, a), *operands(case))
        calls.append(report.products.rows)
    assert sum([n > 0 for n in calls]) >= 6


def test_what_is_drawn():
    cases = [draw_case(seed) for seed in range(300)]
    assert {c.dtype for c in cases} == {"float32", "float64"}
    assert any(c.special for c in cases) and any(c.members for c in cases)
    assert any(c.behind for c in cases) and any(len(c.tail) == 2 for c in cases)
    assert len({step.op for c in cases for step in c.steps}) == 20
