"""Which loops are worth it, by the rule, and what the compiler makes of them."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import cost
from stretto._engine.core.machine import Kind
from stretto._engine.passes.prepare import prepare
from stretto._engine.passes.rolling.operands import loop_in
from stretto._engine.passes.rolling.profit import (
    LOOP,
    OPERATION,
    Use,
    compile_time,
    copies_per_iteration,
    count,
    exchange,
    gain,
    may_pay,
    runs_as_fast,
)
from stretto._engine.passes.rolling.roll_loops import Stretch
from tests._engine.passes.rolling.test_operands import places
from tests._engine.passes.rolling.test_profit_liveness import chain
from tests._engine.passes.rolling.test_roll_loops import (
    array,
    gradient,
    layers,
    lengths,
    power,
    straight,
)


def chosen(f, *args):
    """The loops of a function, as it is lowered."""
    return lengths(prepare(st.make_graph(f)(*args)))


def recurrent(w, u, x, h):
    for t in range(x.shape[1]):
        h = snp.tanh(h @ w + x[:, t] @ u)
    return h


def recurrence(width, batch, turns):
    sizes = (width, width), (width, width), (batch, turns, width), (batch, width)
    return [array(*size, seed=i) for i, size in enumerate(sizes)]


def test_long_chains_pay_and_short_ones_do_not():
    assert chosen(lambda x: power(x, 1000), array(4)) == [1000]
    assert chosen(lambda x: power(x, 1000), array(100, 100)) == [1000]
    assert chosen(lambda x: power(x, 100), array(4)) == []


def test_a_turn_has_several_element_wise_operations():
    def turn(f, *args):
        (scan,) = prepare(st.make_graph(f)(*args)).equations[-1:]
        return scan.primitive.unroll

    assert turn(lambda x: power(x, 1000), array(4)) == 8
    assert turn(lambda x: power(x, 990), array(4)) == 9  # so that no copies are left over
    scaled = lambda x, rows: [x := snp.sin(x) * row + 1 for row in rows][-1]
    assert turn(scaled, array(4), array(240)) == 3
    assert turn(recurrent, *recurrence(4, 2, 20)) == 1


@pytest.mark.parametrize(("turns", "copies"), [(5, 1), (8, 2), (20, 5), (31, 7), (32, 8), (36, 9)])
def test_an_iteration_has_a_quarter_of_the_turns_at_most(turns, copies):
    program = straight(lambda x: power(x, turns), array(4))
    loop = loop_in(program.equations, 0, turns, 1, places(program))
    assert copies_per_iteration(loop) == copies


def test_small_recurrences_pay_and_so_do_their_derivatives():
    args = recurrence(16, 8, 20)
    assert chosen(recurrent, *args) == [20]
    assert chosen(gradient(recurrent, 0, 1), *args) == [20, 19]


def test_long_operations_are_left_side_by_side():
    """The products with the inputs need not wait for the state."""
    args = recurrence(256, 64, 20)
    assert chosen(recurrent, *args) == []

    def one_chain(w, h):
        for _ in range(20):
            h = snp.tanh(h @ w) / snp.sum(h)
        return h

    assert chosen(one_chain, args[0], args[3]) == [20]


def test_weights_are_not_copied_together():
    weights = [array(64, 64, seed=i) for i in range(30)]
    biases = [array(64, seed=i) for i in range(30)]
    assert chosen(layers, weights, biases, array(8, 64)) == []
    assert chosen(layers, snp.stack(weights), snp.stack(biases), array(8, 64)) == [30]


def test_results_are_not_taken_apart_where_that_takes_long():
    def f(x, rows):
        return [snp.sum(x * row) * x for row in rows]

    assert chosen(f, array(1000), array(30, 1000)) == []


def test_few_results_of_many_turns_take_no_stack():
    def f(w, x):
        kept = []
        for i in range(40):
            x = snp.tanh(x @ w) / snp.sum(x)
            if i % 13 == 12:
                kept.append(x)
        return kept

    assert chosen(f, array(64, 64), array(512, 64)) == []


def test_the_setting():
    with st.config(roll_loops=False):
        assert chosen(lambda x: power(x, 1000), array(4)) == []


def test_what_repeats_in_a_refused_loop_is_looked_at():
    weights = [array(128, 128, seed=i) for i in range(6)]

    def f(weights, x):
        for w in weights:
            x = x @ w
            for t in range(16):
                x = x + snp.tanh(x[:, t : t + 1] * x)
        return x

    assert chosen(f, weights, array(64, 128)) == [16] * 6


@pytest.mark.parametrize("f", [recurrent, gradient(recurrent, 0, 1)], ids=["there", "back"])
def test_a_loop_has_fewer_kernels_and_takes_no_more_memory(f):
    kernels, memory = [], []
    for on in (False, True):
        with st.config(roll_loops=on):
            compiled = st.jit(f).lower(*recurrence(16, 8, 20)).compile()
        kernels.append(compiled.as_text().count(" fusion("))
        memory.append(compiled.memory_analysis().temp_size_in_bytes)
    assert kernels[1] < 0.5 * kernels[0]
    assert memory[1] <= memory[0]


# What copies cost the compiler, by the estimate.


def test_what_compiling_takes():
    program = straight(lambda x: snp.tanh(x) * snp.sum(x) + snp.sort(x) + x[1], array(4))
    times = {e.primitive.name: compile_time(e.primitive, False) for e in program.equations}
    assert times["mul"] < times["tanh"] < times["sort"] < times["reduce_sum"]
    (cut,) = [e.primitive for e in program.equations if e.primitive.name == "slice"]
    assert compile_time(cut, False) < compile_time(cut, True)
    copy = list(program.equations)
    assert may_pay(copy * 20, Stretch(0, len(copy), 20 * len(copy)))
    assert not may_pay(copy * 2, Stretch(0, len(copy), 2 * len(copy)))


@pytest.mark.parametrize(
    ("f", "took"),
    [
        (lambda x: snp.reshape(x, (2, 2)), 0.1),
        (lambda x: x * x, 0.2),
        (snp.tanh, 1),
        (snp.sum, 15),
        (snp.sort, 5),
    ],
    ids=["a view", "an operation", "one that takes long", "a sum", "a kernel of several loops"],
)
def test_the_compiler_takes_as_long_for_an_operation_as_measured(f, took):
    (e,) = straight(f, array(4)).equations
    assert compile_time(e.primitive, False) == took
    assert compile_time(e.primitive, True) == 10  # at another place in each copy


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
    assert compile_time(loop, False) == compile_time(loop, True) == 2 * OPERATION * inner
    (longer,) = [e.primitive for e in looped(500).equations if e.primitive.holds_programs]
    assert compile_time(longer, False) == compile_time(loop, False)


@pytest.mark.parametrize("start", [0, 7])
def test_the_first_copy_is_compiled_in_any_case(start):
    equations = straight(lambda x: [x := x * x for _ in range(400)][-1], array(4)).equations
    enough = int(LOOP / OPERATION) + 2
    assert may_pay(equations, Stretch(start, 1, enough))
    assert not may_pay(equations, Stretch(start, 1, enough - 1))
    # What is left over beyond whole copies is no copy.
    assert not may_pay(equations, Stretch(start, 2, enough - 1))


# Single loops, by the figures of one core of the machine that was measured.


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(cost, "CPU", cost.TABLES[Kind.AVX512]._replace(products=50e3))


def judged(f, *args, period=1):
    """Of a function whose equations are one loop: what it gains, and whether it runs as fast."""
    program = straight(f, *args)
    whole = (0, len(program.equations) // period * period)
    (loop,) = [loop_in(program.equations, *whole, period, places(program))]
    use = exchange(program, [loop], places(program)).uses[id(loop)]
    return gain(loop, use), runs_as_fast(loop, use, {})


def sines(turns, *read):
    """A chain of sines, of which these are results besides the last."""

    def f(x):
        values = chain(snp.sin, x, turns)
        return [values[k] for k in (*read, -1)]

    return f


def test_what_a_loop_gains():
    # Of 400 copies eight are compiled; a loop takes as long as 250, and a result as one.
    assert judged(sines(400), array(4))[0] == pytest.approx((392 - 250 - 1) * 0.2)
    assert judged(sines(400, 7), array(4))[0] == pytest.approx((392 - 250 - 2) * 0.2)
    assert judged(sines(402), array(4))[0] == pytest.approx((392 - 250 - 1) * 0.2)

    def summed(x, rows):
        for k in range(10):
            x = x * snp.sum(rows[k])
        return x

    # A slice at a place that moves, a reshape, a sum, a broadcast and a product.
    each = 10 + 0.1 + 15 + 0.1 + 0.2
    got, _ = judged(summed, array(4), array(10, 4), period=5)
    assert got == pytest.approx(9 * each - 50 - 4 - 0.2)


def test_numbers_of_each_copy_are_no_places():
    def scaled(x, y):
        for k in range(12):
            x = snp.sin(x * snp.sum(x)) + y * float(k)
        return x

    # A sum, its broadcast, a product, a sine; the number's product, and their sum.
    each = 15 + 0.1 + 0.2 + 0.2 + 0.2 + 0.2
    got, _ = judged(scaled, array(4), array(4, seed=1), period=6)
    assert got == pytest.approx(11 * each - 50 - 0.2)


def test_what_nobody_reads_gains_nothing():
    program = straight(sines(8), array(4))
    loop = loop_in(program.equations, 0, 8, 1, places(program))
    assert gain(loop, Use({}, {}, {})) == 0 and runs_as_fast(loop, Use({}, {}, {}), {})


def test_a_microsecond_more_is_no_loss(measured):
    """To copy 15,000 bytes takes one, and to take two results out of a stack."""
    assert judged(sines(8), array(3750))[1]
    assert not judged(sines(8), array(3751))[1]
    assert not judged(sines(8, 2), array(3))[1]


def test_three_parts_in_a_hundred_are_no_loss(measured):
    """The argument is copied in 26.7 µs, and a sine of 100,000 numbers takes 5."""
    x = snp.ones(100_000)
    assert judged(sines(178), x)[1]
    assert not judged(sines(177), x)[1]


@pytest.mark.parametrize(("products", "fast"), [(3, False), (4, True)])
def test_results_are_copied_out_of_their_stack(measured, products, fast):
    """Twelve of 4 KiB take 3.3 µs, beside their kernels."""

    def f(w, x):
        values = chain(lambda x: x @ w, x, 20 * products)
        return values[products - 1 :: products][-12:]

    assert judged(f, array(128, 128), array(8, 128), period=products)[1] is fast


def test_how_much_more_memory_a_loop_may_take(measured):
    """64 KiB of values that nobody reads, or as much as it carries."""

    def products(turns):
        def f(w, x):
            values = chain(lambda x: x @ w, x, turns)
            return values[2], values[-1]

        return f

    w, x = array(128, 128), array(8, 128)  # 4 KiB
    assert judged(products(18), w, x)[1]
    assert not judged(products(19), w, x)[1]


def test_from_which_work_on_an_operation_has_its_own_thread(measured):
    """Two products of 400,000 multiply-adds in a turn run side by side; smaller ones do not."""
    assert chosen(recurrent, *recurrence(100, 39, 20)) == [20]
    assert chosen(recurrent, *recurrence(100, 40, 20)) == []
