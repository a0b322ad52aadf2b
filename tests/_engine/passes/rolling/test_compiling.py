"""What copies cost the compiler, by the estimate."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.passes.rolling.compiling import LOOP, OPERATION, compiling, count, may_pay
from stretto._engine.passes.rolling.stretches import Stretch
from tests._engine.passes.rolling.test_roll_loops import array, straight


def test_what_compiling_takes():
    program = straight(lambda x: snp.tanh(x) * snp.sum(x) + snp.sort(x) + x[1], array(4))
    times = {e.primitive.name: compiling(e.primitive, False) for e in program.equations}
    assert times["mul"] < times["tanh"] < times["sort"] < times["reduce_sum"]
    (cut,) = [e.primitive for e in program.equations if e.primitive.name == "slice"]
    assert compiling(cut, False) < compiling(cut, True)
    copy = list(program.equations)
    assert may_pay(copy * 20, Stretch(0, len(copy), 20 * len(copy)))
    assert not may_pay(copy * 2, Stretch(0, len(copy), 2 * len(copy)))


def looped(turns):
    def f(x):
        return st.lax.fori_loop(0, turns, lambda i, x: snp.sin(x) * x, x)

    return st.make_graph(f)(array(4))


def test_programs_within_are_counted():
    program = looped(5)
    within = sum(len(p.equations) for e in program.equations if e.primitive.holds_programs
                 for p in e.primitive.programs())  # fmt: skip
    assert within
    assert count(program) == len(program.equations) + within
    assert program.cache["count"] == count(program)
    assert count(st.make_graph(lambda x: x)(array(4))) == 0


def test_what_holds_programs_costs_as_its_programs_do_wherever_it_stands():
    (loop,) = [e.primitive for e in looped(5).equations if e.primitive.holds_programs]
    inner = sum(map(count, loop.programs()))
    assert compiling(loop, False) == compiling(loop, True) == 2 * OPERATION * inner
    (longer,) = [e.primitive for e in looped(500).equations if e.primitive.holds_programs]
    assert compiling(longer, False) == compiling(loop, False)


@pytest.mark.parametrize("start", [0, 7])
def test_the_first_copy_is_compiled_in_any_case(start):
    equations = straight(lambda x: [x := x * x for _ in range(400)][-1], array(4)).equations
    enough = int(LOOP / OPERATION) + 2
    assert may_pay(equations, Stretch(start, 1, enough))
    assert not may_pay(equations, Stretch(start, 1, enough - 1))
    # What is left over beyond whole copies is no copy.
    assert not may_pay(equations, Stretch(start, 2, enough - 1))
