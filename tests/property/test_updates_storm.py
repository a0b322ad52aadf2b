"""Random updates of many arrays by our kernel, a few of those of ``make updates-storm``."""

import pytest

import stretto as st
from stretto._engine.kernels import WITHOUT
from tests.property.storms import find_wrong_numbers
from tests.property.updates_storm import (
    disagreement,
    draw_case,
    expected,
    operands,
    results,
    step_of,
)

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")

FEW = [seed for seed in range(40) if len(draw_case(seed).shapes) < 10]


@pytest.mark.parametrize("seed", FEW[:10])
def test_programs_are_numpys(seed):
    case = draw_case(seed)
    arrays = operands(case)
    with st.enable_x64():
        said = disagreement(case, results(case, arrays), arrays)
    assert not said, f"{said}\n{case.words}"


def test_a_wrong_number_is_found():
    tame = (c for c in map(draw_case, FEW) if not c.special)
    case = next(c for c in tame if expected(c, operands(c))[1] < 100)
    arrays = operands(case)
    with st.enable_x64():
        got = results(case, arrays)
        wrong = lambda numbers: disagreement(case, numbers, arrays)
        find_wrong_numbers(wrong, got, {0: "value 0", -1: f"value {len(got) - 1}"}, 100)


def test_most_have_a_call_of_the_kernel():
    calls = []
    for seed in FEW[:12]:
        case = draw_case(seed)._replace(members=False)
        with st.enable_x64():
            report = st.explain(step_of(case), *operands(case))
        calls.append(report.products.updates)
    assert sum([n > 0 for n in calls]) >= 6


def test_what_is_drawn():
    cases = [draw_case(seed) for seed in range(300)]
    assert {c.dtype for c in cases} == {"float32", "float64"}
    for name in ("special", "members", "donated"):
        assert {getattr(c, name) for c in cases} == {True, False}
    assert len({s.op for c in cases for steps in c.programs for s in steps}) == 16
