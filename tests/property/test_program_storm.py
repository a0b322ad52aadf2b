"""Random programs in float32, a few of those of ``make program-storm``."""

import numpy as np

from stretto import lax
from tests.property.program_storm import Moved, Program, Step, check, draw_program, expected


def test_programs_are_numpys_in_float64():
    found = check([draw_program(seed) for seed in range(40, 64)])
    assert not found, [(p.seed, way, wrong, p.words) for p, way, wrong in found]


def test_a_wrong_function_is_found_in_every_way():
    def wrong(library, x):
        return library.multiply(x, 1.0 if isinstance(library, Moved) else 1.00001)

    program = Program(0, (2, 3), 1.0, [Step("wrong", wrong, (0,))])
    assert {way for _, way, _ in check([program])} >= {"eager", "jit", "vmap", "jit(vmap)"}


def test_a_wrong_slope_is_found():
    def half(library, x):
        y = library.sin(x)
        return y if isinstance(library, Moved) else 0.5 * y + 0.5 * lax.stop_gradient(y)

    program = Program(0, (2, 3), 1.0, [Step("half the slope", half, (0,))])
    assert [way for _, way, _ in check([program])] == ["jit(vmap(grad))"]


def test_how_far_off_a_result_may_be_is_measured():
    apart = [Step("cosh", lambda lib, x: lib.cosh(x), (0,))]
    cancels = [*apart, Step("- itself", lambda lib, x: lib.subtract(x, lib.cosh(x)), (1,))]
    spreads = [
        np.ptp(expected(Program(0, (2, 3), 1.0, steps)).runs, axis=0).max()
        for steps in (apart, cancels)
    ]
    assert 0 < spreads[0] < 1e-5 < spreads[1] * 1e3
