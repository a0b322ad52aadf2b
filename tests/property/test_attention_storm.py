"""Random attention by our kernels, a few of those of ``make attention-storm``."""

from typing import Any

import pytest

import stretto as st
from stretto._engine.kernels import WITHOUT
from tests.property.attention_storm import (
    disagreement,
    draw_case,
    given,
    operands,
    program,
    results,
)
from tests.property.storms import find_wrong_numbers

pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


@pytest.mark.parametrize("seed", range(12))
def test_attention_is_numpys(seed):
    case = draw_case(seed)
    arrays = operands(case)
    with st.enable_x64():
        said = disagreement(case, results(case, arrays), arrays)
    assert not said, f"{said}\n{case.words}"


def test_a_wrong_number_is_found():
    case = next(c for c in map(draw_case, range(100)) if not c.special and c.slopes)
    arrays = operands(case)
    with st.enable_x64():
        got = results(case, arrays)
        wrong = lambda numbers: disagreement(case, numbers, arrays)
        find_wrong_numbers(wrong, got, dict(enumerate(("values", "q'", "k'", "v'"))), 1)


def test_most_have_calls_of_the_kernels():
    counts = {"stretto_attention": 0, "stretto_attention_gradient": 0}
    for seed in range(40):
        case = draw_case(seed)
        arrays = operands(case)
        with st.enable_x64():
            compiled: Any = st.jit(program(case, arrays))
            text = compiled.lower(*given(arrays)).as_text()
        for name in counts:
            counts[name] += f'"{name}"' in text
    assert counts["stretto_attention"] >= 15
    assert counts["stretto_attention_gradient"] >= 6


def test_what_is_drawn():
    cases = [draw_case(seed) for seed in range(300)]
    assert {c.dtype for c in cases} == {"float32", "float64"}
    assert {step.kind for c in cases for step in c.steps} == {"scale", "add", "mask", "causal"}
    assert {c.special for c in cases} == {"", "not finite", "large"}
    assert any(c.groups != c.heads for c in cases) and any(c.members for c in cases)
