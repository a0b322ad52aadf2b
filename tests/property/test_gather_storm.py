"""Random gathers and bags by our kernel, a few of those of ``make gather-storm``."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.kernels import WITHOUT
from tests.property.gather_storm import disagreement, draw_case, operands, results, values
from tests.property.storms import find_wrong_numbers

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


@pytest.mark.parametrize("seed", range(16))
def test_programs_are_numpys(seed):
    case = draw_case(seed)
    with st.enable_x64():
        arrays = operands(case)
        said = disagreement(case, results(case, arrays), arrays)
    assert not said, f"{said}\n{case.words}"


def test_a_wrong_number_is_found():
    case = next(c for c in map(draw_case, range(100)) if c.kind == "sum" and not c.special)
    case = case._replace(mode="clip", dtype="float64")
    with st.enable_x64():
        arrays = operands(case)
        got = results(case, arrays)
        wrong = lambda numbers: disagreement(case, numbers, arrays)
        find_wrong_numbers(wrong, got, {0: "value", -1: "gradient"}, 100)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_wrong_element_is_found(dtype):
    case = next(c for c in map(draw_case, range(100)) if c.kind == "rows" and not c.special)
    case = case._replace(mode="clip", dtype=dtype)
    arrays = operands(case)
    got = [np.array(a) for a in results(case, arrays)]
    assert disagreement(case, got, arrays) == ""
    got[0].flat[-1] += 1
    assert disagreement(case, got, arrays) == "value: other elements"
    assert disagreement(case, [got[0][None]], arrays).startswith("value: (1,")


def test_many_have_a_call_of_the_kernel():
    calls = []
    for seed in range(40):
        case = draw_case(seed)._replace(members="none")
        with st.enable_x64():
            report = st.explain(lambda *a, case=case: values(case, *a), *operands(case))
        calls.append(report.products.gathers)
    assert sum([n > 0 for n in calls]) >= 12


def test_what_is_drawn():
    cases = [draw_case(seed) for seed in range(400)]
    assert len({c.dtype for c in cases}) == 10 and len({c.kind for c in cases}) == 13
    assert {c.members for c in cases} == {"none", "table", "indices", "both"}
    assert any(c.special for c in cases) and {c.mode for c in cases} > {"clip", "fill"}
