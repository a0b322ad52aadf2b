"""How many members a turn: the work of a member, and the estimates of its time."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.cost import CPU
from stretto._engine.passes.formulations.chunk_size import (
    Work,
    best_turn,
    operations,
    time_at_once,
    work_of,
)

ROW, MATRIX = 4 * 32, 4 * 32 * 32


def member(w, x):
    return snp.tanh(x @ w)


def work(f=member, over=(True, True)):
    return work_of(st.make_graph(f)(snp.ones((32, 32)), snp.ones((1, 32))), over, CPU)


def test_the_work_of_a_product():
    found = work()
    assert found.products == [(32 * 32, CPU.fraction(32 * 32))]
    # The product's result is written, and read and written element by element.
    assert [size for _, size in found.touched] == [ROW, ROW, ROW]
    weights = [w for w, _ in found.touched]
    assert weights[0] == 1 and weights[1] == weights[2] < 1
    assert found.outputs == ROW
    assert found.kernels == 1


def test_only_what_is_each_member_s_own_is_moved():
    assert work().moved == MATRIX + ROW + ROW
    assert work(over=(True, False)).moved == MATRIX + ROW
    assert work(over=(False, True)).moved == ROW + ROW


def test_operations_of_calls_are_those_of_what_is_called():
    inner = st.jit(member)
    program = st.make_graph(lambda w, x: inner(w, inner(w, x)))(
        snp.ones((32, 32)), snp.ones((1, 32))
    )
    assert {e.primitive.name for e in program.equations} == {"call"}
    assert [p.name for p, _, _ in operations(program)] == ["dot_general", "tanh"] * 2
    loop = st.make_graph(lambda x: st.lax.fori_loop(0, 3, lambda i, x: snp.sin(x), x))(1.0)
    assert "sin" not in [p.name for p, _, _ in operations(loop)]  # a loop is one operation


def test_all_at_once_takes_longer_with_each_member():
    times = [time_at_once(work(), n, CPU) for n in (1, 2, 4, 1000)]
    assert times == sorted(times) and times[0] > 0


@pytest.mark.parametrize("size", [1, 7, 12])
def test_turns_have_equally_many_members(size):
    turn, times = best_turn(work(), size, CPU)
    assert set(times) == {n for n in range(1, size + 1) if size % n == 0}
    assert turn in times


def test_little_work_is_done_at_once():
    assert best_turn(work(), 12, CPU)[0] == 12


def test_what_takes_fresh_memory_all_at_once_is_done_in_turns():
    size, each = 32, 8_000_000
    heavy = Work([(1.0, each)] * 4, [(1e6, 0.5)], moved=100.0, outputs=100.0, kernels=4, alive=each)
    turn, times = best_turn(heavy, size, CPU)
    assert turn < size
    assert times[turn] < 0.92 * times[size]
    # Of turns that take as long the one of fewest members.
    assert all(t > 1.01 * min(times.values()) for n, t in times.items() if n < turn)
    # Where as much must be moved into the loop and out of it nothing is won.
    assert best_turn(heavy._replace(moved=20.0 * each, outputs=10.0 * each), size, CPU)[0] == size
