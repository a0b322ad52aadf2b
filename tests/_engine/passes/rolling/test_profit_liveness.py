"""What loops give to one another, and which of their outputs are read."""

import stretto as st
import stretto.numpy as snp
from stretto._engine.passes.rolling.operands import Carried, Given, loop_in
from stretto._engine.passes.rolling.profit import Gathered, exchange, sources_of
from tests._engine.passes.rolling.test_operands import places
from tests._engine.passes.rolling.test_roll_loops import array, straight


def loops_of(program, *bounds):
    """The loops between these bounds, with periods of one."""
    homes = places(program)
    loops = [loop_in(program.equations, low, high, 1, homes) for low, high in bounds]
    assert [(loop.start, loop.end) for loop in loops] == list(bounds)
    return loops, exchange(program, loops, homes)


def chain(f, x, turns=6):
    values = []
    for _ in range(turns):
        x = f(x)
        values.append(x)
    return values


def test_the_last_value_of_a_chain():
    program = straight(lambda x: chain(snp.sin, x)[-1], array(3))
    (loop,), found = loops_of(program, (0, 6))
    use = found.uses[id(loop)]
    assert use.live and use.outs == {(0, 0): [5]}
    assert not use.asked and not use.links and not found.gathered


def test_copies_read_outside_are_listed_in_order():
    def f(x):
        values = chain(snp.sin, x)
        return [values[i] for i in (4, 1, 4, 5)]

    program = straight(f, array(3))
    (loop,), found = loops_of(program, (0, 6))
    assert found.uses[id(loop)].outs == {(0, 0): [1, 4, 5]}


def test_what_nobody_reads_is_not_live_nor_what_it_reads():
    def f(x):
        chain(snp.cos, chain(snp.sin, x)[-1])
        return x

    program = st.make_graph(f)(array(3))
    assert len(program.equations) == 12
    (first, second), found = loops_of(program, (0, 6), (6, 12))
    assert not found.uses[id(first)].live and not found.uses[id(second)].live


def test_operations_with_effects_are_needed():
    def f(x):
        st.debug.print("{}", chain(snp.sin, x)[3])
        return x

    program = st.make_graph(f)(array(3))
    (loop,), found = loops_of(program, (0, 6))
    assert found.uses[id(loop)].outs == {(0, 0): [3]}


def linked(f, *bounds):
    program = straight(f, array(3))
    (first, second), found = loops_of(program, *bounds)
    return first, second, found.uses[id(first)], found.uses[id(second)]


def test_a_loop_that_reads_another_copy_by_copy():
    def f(x):
        y = snp.ones_like(x)
        for value in chain(snp.sin, x):
            y = y * value
        return y

    first, _, one, other = linked(f, (0, 6), (6, 12))
    ((given, link),) = other.links.items()
    assert isinstance(given, Given)
    assert (link.loop, link.kept, link.copies) == (first, (0, 0, ()), (0, 1, 2, 3, 4, 5))
    assert one.asked == {(0, 0, ()): None} and not one.outs and one.live


def test_backwards_as_derivatives_do():
    def f(x):
        y = snp.ones_like(x)
        for value in chain(snp.sin, x)[::-1]:
            y = y * value
        return y

    _, _, one, other = linked(f, (0, 6), (6, 12))
    ((_, link),) = other.links.items()
    assert link.copies == (5, 4, 3, 2, 1, 0)
    assert not one.outs


def test_what_each_copy_gets_and_what_the_last_gives_are_no_one_stack():
    def f(x):
        y = snp.ones_like(x)
        for value in [x, *chain(snp.sin, x, 5)][::-1]:
            y = y * value
        return y

    first, _, one, other = linked(f, (0, 5), (5, 11))
    (carried,) = [s for s in sources_of(first) if isinstance(s, Carried)]
    assert carried.first and not other.links and not one.asked
    assert one.outs == {(0, 0): [0, 1, 2, 3, 4]}


def test_what_began_a_loop_is_linked_where_the_last_copy_is_not():
    def f(x):
        values = [x, *chain(snp.sin, x)]
        y = snp.ones_like(x)
        for value in values[:-1]:
            y = y * value
        return y * values[-1]

    program = straight(f, array(3))
    (first, second), found = loops_of(program, (0, 6), (6, 12))
    ((_, link),) = found.uses[id(second)].links.items()
    assert link.kept == (0, 0, program.inputs) and link.copies == (0, 1, 2, 3, 4, 5)
    assert found.uses[id(first)].outs == {(0, 0): [5]}


def test_a_concatenation_of_neighbouring_copies_reads_their_stack():
    def f(order):
        def g(x):
            values = chain(snp.sin, x)
            return snp.concatenate([x, *[values[i] for i in order]]), values[-1]

        return g

    def parts(*order):
        program = straight(f(order), array(3))
        (loop,), found = loops_of(program, (0, 6))
        gathered = found.gathered.get(id(program.equations[-1]))
        return gathered, found.uses[id(loop)]

    gathered, use = parts(0, 1, 2, 3, 4, 5)
    assert [isinstance(p, Gathered) for p in gathered] == [False, True]
    assert gathered[1].link.copies == (0, 1, 2, 3, 4, 5) and gathered[1].shape == (3,)
    assert use.asked == {(0, 0, ()): None} and use.outs == {(0, 0): [5]}
    gathered, _ = parts(5, 4, 3, 2)
    assert gathered[1].link.copies == (5, 4, 3, 2)
    for apart in [(0, 2, 4), (3, 3, 3, 3), (0, 1, 0, 1)]:
        gathered, use = parts(*apart)
        assert gathered is None
        assert use.outs == {(0, 0): sorted({*apart, 5})}


def test_stacked_copies_are_reshaped_first():
    program = straight(lambda x: snp.stack(chain(snp.sin, x)), array(3))
    homes = places(program)
    loop = loop_in(program.equations, 0, 6, 1, homes)
    found = exchange(program, [loop], homes)
    ((gathered,),) = found.gathered.values()
    assert gathered.shape == (1, 3) and gathered.link.kept == (0, 0, ())
