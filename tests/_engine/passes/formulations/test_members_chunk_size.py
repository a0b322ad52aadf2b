"""How many members a turn: the work of a member, and the estimates of its time."""

from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.cost import CPU
from stretto._engine.passes.formulations import members
from stretto._engine.passes.formulations.members import (
    Plan,
    Work,
    best_chunk,
    budget,
    chunk_within,
    operations,
    peak_bytes,
    stored_bytes,
    time_at_once,
    work_of,
)

ROW, MATRIX = 4 * 32, 4 * 32 * 32


def member(w, x):
    return snp.tanh(x @ w)


def momentum(w, m, x):
    m = 0.9 * m + x.T @ snp.tanh(x @ w)
    return w - 0.1 * m, m


def work(f=member, over=(True, True)):
    return work_of(st.make_graph(f)(snp.ones((32, 32)), snp.ones((1, 32))), over, CPU)


def test_the_work_of_a_product():
    found = work()
    assert found.products == [(32 * 32, CPU.fraction(32 * 32))]
    # The product's result is written, and read element by element; what leaves is not counted.
    assert [size for _, size in found.touched] == [ROW, ROW]
    weights = [w for w, _ in found.touched]
    assert weights[0] == 1 and weights[1] < 1
    assert found.outputs == ROW
    assert found.kernels == 1


def test_only_what_is_each_member_s_own_is_moved():
    assert work().moved == MATRIX + ROW + ROW
    assert work(over=(True, False)).moved == MATRIX + ROW
    assert work(over=(False, True)).moved == ROW + ROW


def test_what_updates_read_and_give_is_not_moved():
    program = st.make_graph(momentum)(snp.ones((32, 32)), snp.ones((32, 32)), snp.ones((8, 32)))
    found = work_of(program, (True, True, False), CPU)
    assert found.moved == 2 * MATRIX  # the weights into the loop, and what is added out of it
    assert found.outputs == MATRIX


def test_operations_of_calls_are_those_of_what_is_called():
    inner = st.jit(member)
    program = st.make_graph(lambda w, x: inner(w, inner(w, x)))(
        snp.ones((32, 32)), snp.ones((1, 32))
    )
    assert {e.primitive.name for e in program.equations} == {"call"}
    assert [p.name for p, *_ in operations(program)] == ["dot_general", "tanh"] * 2


def test_operations_of_loops_are_done_in_each_step():
    step = lambda x, _: (snp.sin(x), st.lax.map(snp.cos, x))
    program = st.make_graph(lambda x: st.lax.scan(step, snp.exp(x), None, length=3))(snp.ones(4))
    times = {p.name: times for p, _, _, times in operations(program)}
    assert (times["exp"], times["sin"], times["cos"]) == (1, 3, 12)
    # Of a loop that ends when it wants to, nothing is known.
    until = lambda x: st.lax.while_loop(lambda x: x.sum() < 3, snp.sin, x)
    assert "sin" not in [p.name for p, *_ in operations(st.make_graph(until)(snp.ones(4)))]


def test_products_in_a_loop_are_charged_for_each_step():
    def run(w, x):
        return st.lax.scan(lambda x, _: (snp.tanh(x @ w), None), x, None, length=7)[0]

    once = work_of(st.make_graph(member)(snp.ones((32, 32)), snp.ones((8, 32))), (True, True), CPU)
    found = work_of(st.make_graph(run)(snp.ones((32, 32)), snp.ones((8, 32))), (True, True), CPU)
    ((one, fraction),) = once.products
    assert found.products == [(7 * one, fraction)]
    assert found.kernels == 10  # seven products, and as often two fifths of what is by element
    row = 8 * 32 * 4
    np.testing.assert_allclose(found.touched, [(7, row), (7, row), (2.8, row), (2.8, row)])


def test_all_at_once_takes_longer_with_each_member():
    times = [time_at_once(work(), n, CPU) for n in (1, 2, 4, 1000)]
    assert times == sorted(times) and times[0] > 0


@pytest.mark.parametrize("size", [1, 7, 12])
def test_turns_have_equally_many_members(size):
    turn, times = best_chunk(work(), size, CPU)
    assert set(times) == {n for n in range(1, size + 1) if size % n == 0}
    assert turn in times


def test_little_work_is_done_at_once():
    assert best_chunk(work(), 12, CPU)[0] == 12


def test_what_takes_fresh_memory_all_at_once_is_done_in_turns():
    size, each = 32, 8_000_000
    heavy = Work([(1.0, each)] * 4, [(1e6, 0.5)], moved=100.0, outputs=100.0, kernels=4, alive=each)
    turn, times = best_chunk(heavy, size, CPU)
    assert turn < size
    assert times[turn] < 0.92 * times[size]
    # Of turns that take as long the one of fewest members.
    assert all(t > 1.01 * min(times.values()) for n, t in times.items() if n < turn)
    # Where as much must be moved into the loop and out of it nothing is won.
    assert best_chunk(heavy._replace(moved=20.0 * each, outputs=10.0 * each), size, CPU)[0] == size


# Memory by estimate, and chunks that keep to a budget.


KIB = 1 << 10


def ordered(x):
    """Of 256 numbers: a matrix of 256 KiB, which no compiler does without."""
    return snp.sort(snp.sin(snp.outer(x, x)), axis=0)[:100].mean()


def squared(x):
    """The same, with a product; XLA does not count what libraries take for its values."""
    y = snp.sin(snp.outer(x, x))
    return snp.sin(y @ y).mean()


def test_peak_counts_what_is_alive_at_once():
    x = snp.ones(256)
    one = st.make_graph(lambda x: snp.sin(snp.sin(snp.sin(x))))(x)
    assert peak_bytes(one) == KIB  # each in the place of the one before
    turned = st.make_graph(lambda x: snp.sin(x).reshape(16, 16).T @ x[:16])(x)
    assert 2 * KIB <= peak_bytes(turned) < 4 * KIB
    kept = st.make_graph(lambda x: (snp.sin(x), snp.cos(x), snp.tan(x)))(x)
    assert peak_bytes(kept) == 3 * KIB
    inner = st.make_graph(lambda x: st.lax.fori_loop(0, 9, lambda i, x: snp.sin(snp.sin(x)), x))(x)
    assert KIB <= peak_bytes(inner) <= 4 * KIB


def test_chunks_divide_the_members_where_they_can():
    program = st.make_graph(lambda x: x + 1)(snp.ones(256))
    with st.config(memory_budget=7 * 2 * KIB):
        assert chunk_within(program, 1, 100) == 5
        assert chunk_within(program, 1, 11) == 7  # no divisor comes near
        assert chunk_within(program, 1, 3) == 3
    with st.config(memory_budget=1):
        assert chunk_within(program, 1, 100) == 1


def test_without_a_setting_the_budget_is_half_of_what_is_free(monkeypatch):
    for free, half in ((10 << 20, 5 << 20), (None, 2 << 30)):  # or of four gibibytes
        found = SimpleNamespace(free=free)
        monkeypatch.setattr(members, "memory", lambda found=found: found)
        assert budget() == half
    with st.config(memory_budget=12):
        assert budget() == 12


@pytest.mark.parametrize("f", [ordered, st.grad(squared)], ids=["values", "gradients"])
def test_auto_keeps_within_the_budget(f):
    x = snp.asarray(np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32))
    with st.config(memory_budget=8 << 20):
        jitted = st.jit(st.vmap(f, chunk_size="auto"))
        used = jitted.lower(x).compile().memory_analysis().temp_size_in_bytes
        with st.config(plan="at once"):
            at_once = st.jit(st.vmap(f)).lower(x).compile().memory_analysis().temp_size_in_bytes
        np.testing.assert_allclose(jitted(x), st.vmap(f)(x), rtol=2e-4, atol=1e-5)
    assert used <= 8 << 20 < at_once


def test_auto_takes_all_that_fit():
    x = snp.ones((4, 8))
    text = st.jit(st.vmap(snp.sin, chunk_size="auto")).lower(x).as_text()
    assert "while" not in text


def test_what_passes_through_memory():
    """Of element-wise operations four tenths do, as they are fused; of products all."""
    found = work(lambda w, x: snp.sin(x @ w) + 1)
    assert found.touched == [(1.0, ROW), *[(0.4, ROW)] * (len(found.touched) - 1)]
    assert found.kernels == 2  # 1.8


def test_what_is_stored_at_once():
    """Results of operations by element are, where others read them; inputs and outputs are not."""
    x = snp.ones((16, 16))
    stored = lambda f: stored_bytes(st.make_graph(f)(x))
    assert stored(snp.sin) == 0
    assert stored(lambda x: snp.sin(x).sum()) == KIB + 4
    assert stored(lambda x: snp.cos(snp.sin(x) @ x)) == 2 * KIB
    # What others are computed of again stays until then; what nobody reads goes at once.
    assert stored(lambda x: (x @ x, x @ x)) == KIB
    three = lambda f: lambda x: f(snp.cos(x @ x), x @ x @ x)
    assert stored(three(lambda late, y: y @ y + 1)) == 2 * KIB
    assert stored(three(lambda late, y: (y @ y) * late)) == 3 * KIB
    inner = lambda x: st.lax.fori_loop(0, 9, lambda i, x: snp.sin(x) @ x, x)
    assert stored(lambda x: snp.sort(inner(snp.sort(x)))) == 4 * KIB + 4  # and the counter


def test_what_is_alive_of_a_member_is_what_its_loop_stores():
    assert work().alive == ROW
    assert work(lambda w, x: x @ w.T).alive == ROW  # the transpose is a matter of strides
    # The gradient, which updates read at once, and what sorting needs; not the new weights.
    keep = lambda w, m, x: momentum(w, m, snp.sort(x))
    program = st.make_graph(keep)(snp.ones((32, 32)), snp.ones((32, 32)), snp.ones((8, 32)))
    assert work_of(program, (True, True, True), CPU).alive == MATRIX + 2 * 8 * ROW


@pytest.mark.parametrize(("turn", "chunk"), [(486.0, 2), (484.0, 1)])
def test_a_loop_must_be_estimated_to_save_some(turn, chunk):
    """Two members at once take 1,000 µs, for memory that is fresh then, and in turns 972 or 968."""
    machine = CPU._replace(kernel=0.0, fresh=1e-3, fresh_bytes=600_000, turn=turn)
    work = Work([], [], 0.0, 0.0, 0, 500_000)
    best, times = best_chunk(work, 2, machine)
    assert times == pytest.approx({2: 1000, 1: 2 * turn})
    assert best == chunk


FREE = CPU._replace(
    products=np.inf, item=0.0, turn=0.0, kernel=0.0, joint=0.0, near=np.inf, shared=np.inf,
    far=np.inf, passing_shared=np.inf, passing_far=np.inf, fresh=0.0, fresh_bytes=100, near_bytes=0,
    shared_bytes=100,
)  # fmt: skip
WORK = Work([(1.0, 6.0), (0.5, 8.0)], [(40.0, 0.5), (60.0, 0.25)], moved=7.0, outputs=3.0,
            kernels=4, alive=30.0)  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "at_once", "in_turns"),
    [
        ({"kernel": 1.0}, 4, 3 * 4),
        ({"item": 1.0}, 2 * 6, 3 * 2 * 2),
        ({"products": 1.0}, 6 * (80 + 240), 6 * (80 + 240)),
        ({"turn": 1.0}, 0, 3),
        ({"passing_shared": 1.0}, 6 * (6 + 4), 6 * (6 + 4)),
        # What is moved into the loop and out of it, and new memory: for all, and its outputs.
        ({"shared": 1.0}, 0, 6 * 7),
        # Of what members need in their turns, once for all turns.
        ({"fresh": 1.0}, 6 * 30, 0),
        ({"fresh": 1.0, "fresh_bytes": 77}, 6 * 30, 2 * 30 + 6 * 3),
        ({"fresh": 1.0, "fresh_bytes": 78}, 6 * 30, 0),
    ],
)
def test_what_members_are_charged_at_once_and_two_a_turn(machine, at_once, in_turns):
    machine = FREE._replace(**machine)
    times = best_chunk(WORK, 6, machine)[1]
    assert (times[6], times[2]) == pytest.approx((at_once, in_turns))
    new = machine.fresh_memory(6 * WORK.alive)
    assert time_at_once(WORK, 6, machine) == pytest.approx(times[6] - new)


@pytest.mark.parametrize(
    ("machine", "in_place", "one_a_turn"),
    [
        ({"shared": 1.0}, True, 0),
        ({"shared": 1.0}, False, 6 * 7),
        ({"fresh": 1.0, "fresh_bytes": 10}, True, 30),
        ({"fresh": 1.0, "fresh_bytes": 10}, False, 30 + 6 * 3),
        ({"joint": 2.0}, True, 6 * 5 * 2),
    ],
)
def test_what_one_member_a_turn_is_charged(machine, in_place, one_a_turn):
    """Where kernels are told which elements they are for, nothing is moved; threads share all."""
    work = WORK._replace(in_place=in_place, joint=5)
    times = best_chunk(work, 6, FREE._replace(**machine))[1]
    assert times[1] == pytest.approx(one_a_turn)


@pytest.mark.parametrize(("cores", "sharing"), [(1, [1]), (2, [1, 2, 3])])
def test_threads_share_products_where_there_is_not_one_for_each_twice(monkeypatch, cores, sharing):
    monkeypatch.setattr(members, "cores", lambda: cores)
    times = best_chunk(WORK._replace(joint=5), 12, FREE._replace(joint=2.0))[1]
    assert {n: t for n, t in times.items() if t} == {n: 12 // n * 5 * 2 for n in sharing}


@pytest.mark.parametrize("in_place", [False, True])
def test_nothing_is_moved_for_several_members_a_turn_where_kernels_read_in_place(in_place):
    times = best_chunk(WORK._replace(in_place=in_place), 6, FREE._replace(shared=1.0))[1]
    assert times[2] == times[3] == (0 if in_place else 6 * 7)


@pytest.mark.parametrize(("rows", "joint"), [(128, 0), (129, 1), (4095, 1), (4096, 0)])
def test_products_that_threads_share_are_counted(rows, joint):
    """From 2**19 multiply-adds on, and below 2**24."""
    program = st.make_graph(lambda x, w: x @ w)(snp.ones((rows, 64)), snp.ones((64, 64)))
    assert work_of(program, (True, True), CPU).joint == joint


def test_of_turns_that_take_as_long_the_fewest_members_are_taken():
    machine = FREE._replace(fresh=1.0, fresh_bytes=100)
    # All at once take new memory, three and fewer a turn none.
    assert best_chunk(WORK._replace(moved=0.0), 6, machine)[0] == 1
    # Turns of one take 3 of 100 more than turns of two.
    costly = machine._replace(turn=1.0, passing_shared=0.6)
    assert best_chunk(WORK._replace(moved=0.0), 6, costly)[0] == 2


def test_what_is_alive_at_once():
    x = snp.ones(256)
    peak = lambda f: peak_bytes(st.make_graph(f)(x))
    assert peak(lambda x: x) == 0
    # What nothing reads is alive while it is computed, and goes then.
    assert peak(lambda x: (snp.sort(snp.sort(x)), snp.sort(x))[0]) == 2 * KIB
    # A call's own values are alive beside those around it.
    inner = st.jit(lambda x: snp.sort(snp.sort(x)).sum())
    assert peak(lambda x: inner(x) + snp.sort(x).sum()) == 2 * KIB + 4
    # An element-wise operation takes the place of an operand that goes, as far as it is as large.
    assert peak(lambda x: snp.sin(snp.sort(x)).astype("float16")) == KIB + KIB // 2


@pytest.mark.parametrize("count", [1, 2, 3])
def test_members_are_planned_for_as_many_as_there_are_in_a_turn(monkeypatch, count):
    estimate = members.best_chunk
    monkeypatch.setattr(members, "best_chunk", lambda *of: (count, estimate(*of)[1]))
    w, x = snp.asarray(np.random.default_rng(0).normal(size=(6, 4, 3))), snp.ones((3, 2))
    one = st.make_graph(lambda w, x: snp.tanh(w @ x))(w[0], x)
    program, (whole, *_) = members.plan_members(one, 6, (True, False), Plan.AUTO, CPU)
    assert whole.chosen == f"{count} of 6 members a turn"
    np.testing.assert_allclose(evaluate(program, [w, x])[0], np.tanh(w @ x), rtol=1e-5)
