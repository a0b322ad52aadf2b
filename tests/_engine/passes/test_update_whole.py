"""Updates of parts that are put together again: what is found, and that values stay."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.core.program import check
from stretto._engine.ops.shape import Concatenate
from stretto._engine.passes.update_whole import update_whole

LAYERS, HEADS, LENGTH, WIDTH = 3, 2, 64, 8


def cache(*shape, seed=0):
    shape = shape or (LAYERS, HEADS, LENGTH, WIDTH)
    return snp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def decoding(array, x, position):
    """Each layer sets a position of its part, and reads all of it; the next goes on from there."""
    parts = []
    for part in array:
        part = part.at[:, position].set(x)
        x = snp.tanh(x + (part * x[:, None]).sum(1) / LENGTH)
        parts.append(part)
    return snp.stack(parts), x


def by_slices(array, x, position):
    parts = []
    for part in array:
        part = st.lax.dynamic_update_slice(part, x[:, None], (0, position, 0))
        x = snp.tanh(x + (part * x[:, None]).sum(1) / LENGTH)
        parts.append(part)
    return snp.stack(parts), x


def along_another(array, x, position):
    parts = []
    for n in range(LAYERS):
        part = array[:, n].at[:, position].add(x)
        x = snp.tanh(x + part.mean(1))
        parts.append(part)
    return snp.stack(parts, axis=1), x


def from_the_last(array, x, position):
    parts = []
    for n in reversed(range(LAYERS)):
        part = array[n].at[:, position].set(x)
        x = snp.tanh(x + (part * x[:, None]).sum(1) / LENGTH)
        parts.insert(0, part)
    return snp.stack(parts), x


def read_at_the_end(array, x, position):
    """All parts are read after all updates, and one is a result."""
    parts = [part.at[:, position].set(x * n) for n, part in enumerate(array)]
    return snp.stack(parts), sum([part.sum(1) for part in parts]), parts[1]


def read_much_later(array, x, position):
    """What the last update depends on has read the first part."""
    first, second, third = array
    first = first.at[:, position].set(x)
    second = second.at[:, position].set(2 * x)
    third = third.at[:, position].set(first.sum(1))
    return snp.stack([first, second, third]), second.sum(1)


def outside_is_left_out(array, x, position):
    """Indices that lie outside change nothing, in the whole as in a part."""
    return snp.stack([part.at[:, position + LENGTH].set(x) for part in array])


def several_positions(array, x, position):
    places = snp.stack([position, position + 2])
    return snp.stack([part.at[:, places].set(x[:, None]) for part in array])


def with_what_is_one_of_them(array, x, position):
    """An update reads a part as it is."""
    first, second, third = array
    first = first.at[:, position].set(x)
    second = second.at[:, position].set(first[:, 3])
    return snp.stack([first, second, third.at[:, position].set(second[:, position])])


FOUND = [decoding, by_slices, from_the_last, read_at_the_end, read_much_later]
FOUND += [outside_is_left_out, several_positions, with_what_is_one_of_them]


def joins(program):
    """How many operations put together arrays as large as the cache."""
    size = LAYERS * HEADS * LENGTH * WIDTH
    found = [e for e in program.equations if isinstance(e.primitive, Concatenate)]
    return len([e for e in found if e.outputs[0].type.size >= size])


def same(f, *args):
    with st.config(simplify=False):
        expected = st.tree.leaves(st.jit(f)(*args))
    for got, e in zip(st.tree.leaves(st.jit(f)(*args)), expected, strict=True):
        np.testing.assert_allclose(got, e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", FOUND)
@pytest.mark.parametrize("position", [0, 5, LENGTH - 3])
def test_what_is_found(f, position):
    args = cache(), cache(HEADS, WIDTH, seed=1), snp.asarray(position)
    program = update_whole(make_graph(f)(*args))
    check(program)
    assert joins(program) == 0
    same(f, *args)


def test_another_axis():
    args = cache(HEADS, LAYERS, LENGTH, WIDTH), cache(HEADS, WIDTH, seed=1), snp.asarray(7)
    program = update_whole(make_graph(along_another)(*args))
    check(program)
    assert joins(program) == 0
    same(along_another, *args)


@pytest.mark.parametrize("f", [decoding, by_slices, read_much_later])
def test_members(f):
    args = cache(4, LAYERS, HEADS, LENGTH, WIDTH), cache(4, HEADS, WIDTH, seed=1)
    for axes, position in ((None, snp.asarray(3)), (0, snp.arange(4))):
        every = st.vmap(f, in_axes=(0, 0, axes))
        program = update_whole(make_graph(every)(*args, position))
        check(program)
        assert joins(program) == 0
        same(every, *args, position)


def test_gradients():
    loss = lambda array, x, position: (decoding(array, x, position)[1] ** 2).sum()
    args = cache(), cache(HEADS, WIDTH, seed=1), snp.asarray(7)
    same(st.grad(loss, (0, 1)), *args)
    same(st.value_and_grad(lambda *args: (decoding(*args)[0] ** 2).sum(), (0, 1)), *args)


@pytest.mark.parametrize("f", [decoding, by_slices])
def test_nothing_is_copied_where_the_array_is_given_up(f):
    array = cache(LAYERS, HEADS, 50 * LENGTH, WIDTH)
    args = array, cache(HEADS, WIDTH, seed=1), snp.asarray(7)
    memory = st.jit(f, donate_argnums=0).lower(*args).compile().memory_analysis()
    assert memory.temp_size_in_bytes < array.nbytes / 2  # one part, which XLA reads


def one_is_left_out(array, x, position):
    return snp.stack([array[0].at[:, position].set(x), array[1].at[:, position].set(x), array[2]])


def in_another_order(array, x, position):
    return snp.stack([array[n].at[:, position].set(x) for n in (1, 0, 2)])


def of_two_arrays(array, x, position):
    other = array * 2
    parts = [array[0], other[1], array[2]]
    return snp.stack([part.at[:, position].set(x) for part in parts])


def of_some(array, x, position):
    return snp.stack([array[n].at[:, position].set(x) for n in (0, 1)])


def read_before(array, x, position):
    """What was there before is read as well."""
    parts = [part.at[:, position].set(x) for part in array]
    return snp.stack(parts), snp.stack([part[:, position] for part in array])


def all_of_a_part(array, x, position):
    return snp.stack([part.at[:, position:].set(x[:, None]) for part in array])


@pytest.mark.parametrize("f", [one_is_left_out, in_another_order, of_two_arrays, of_some])
def test_what_is_left(f):
    args = cache(), cache(HEADS, WIDTH, seed=1), snp.asarray(7)
    graph = make_graph(f)(*args)
    assert update_whole(graph) is graph
    same(f, *args)


def test_what_was_there_before_may_be_read_elsewhere():
    args = cache(), cache(HEADS, WIDTH, seed=1), snp.asarray(7)
    check(update_whole(make_graph(read_before)(*args)))
    same(read_before, *args)


def test_parts_that_are_replaced_are_left():
    args = cache(), cache(HEADS, WIDTH, seed=1)
    f = lambda array, x: all_of_a_part(array, x, 4)
    graph = make_graph(f)(*args)
    assert update_whole(graph) is graph
    same(f, *args)
