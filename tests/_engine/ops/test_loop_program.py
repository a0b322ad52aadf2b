"""Bodies of loops as instructions of the kernel."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.ops.loop_program import instructions, product_of

WIDTH, ROWS = 6, 3


def loop(body, *stack, width=WIDTH, rows=ROWS):
    """The loop of a body over a matrix, one carried array and stacks."""
    w, h = snp.ones((width, width)), snp.ones((rows, width))
    run = lambda w, h, *xs: st.lax.scan(lambda h, x: body(w, h, x), h, xs if xs else None, length=4)
    (equation,) = [e for e in make_graph(run)(w, h, *stack).equations if e.primitive.name == "scan"]
    return equation.primitive


def told(body, *stack, **sizes):
    one = loop(body, *stack, **sizes)
    return instructions(one.body, one.consts, one.carry, one.length, one.reverse)


def pad(x, value, columns):
    return st.lax.pad(x, snp.float32(value), [(0, 0, 0), columns])


update = st.lax.dynamic_update_slice

FITS = {
    "plain": lambda w, h, _: (snp.tanh(h @ w), None),
    "turned": lambda w, h, _: (snp.tanh(h @ w.T), None),
    "twice": lambda w, h, _: (snp.tanh(h @ w) @ w, h),
    "columns": lambda w, h, _: (snp.concatenate([h[:, 2:], (h @ w)[:, :2]], -1), None),
    "between zeros": lambda w, h, _: (pad((h @ w)[:, :4], 0.0, (1, 1, 0)), None),
    "put": lambda w, h, _: (update(snp.zeros_like(h), (h @ w)[:, :3], (0, 1)), None),
    "put side by side": lambda w, h, _: (
        update(update(snp.zeros_like(h), (h @ w)[:, :3], (0, 0)), h[:, :3], (0, 3)), None,
    ),
    "sum": lambda w, h, _: (
        pad((h @ w)[:, :4], 0.0, (2, 0, 0)) + pad(h[:, :2], 0.0, (0, 4, 0)), None,
    ),
    "sum over each other": lambda w, h, _: (
        pad((h @ w)[:, :4], 0.0, (2, 0, 0)) + pad(h[:, :3], 0.0, (0, 3, 0)), None,
    ),
    "condition": lambda w, h, _: (snp.where(h @ w > 0, h, 0.5 * h), None),
}  # fmt: skip
OTHERWISE = {
    "no product": lambda w, h, _: (snp.tanh(h), None),
    "along rows": lambda w, h, _: (h @ w - h.sum(-1, keepdims=True), None),
    "between rows": lambda w, h, _: ((h @ w)[::-1], None),
    "of what changes": lambda w, h, _: (h @ (h.T @ h), None),
    "another function": lambda w, h, _: (snp.sin(h @ w), None),
    "between ones": lambda w, h, _: (pad((h @ w)[:, :4], 1.0, (1, 1, 0)), None),
    "with gaps": lambda w, h, _: (pad((h @ w)[:, :3], 0.0, (1, 0, 1)), None),
    "cut in front": lambda w, h, _: (pad(h @ w, 0.0, (-1, 1, 0)), None),
    "cut behind": lambda w, h, _: (pad(h @ w, 0.0, (1, -1, 0)), None),
    "rows put": lambda w, h, _: (update(snp.zeros_like(h), (h @ w)[:1], (1, 0)), None),
    "over each other": lambda w, h, _: (
        update(update(snp.zeros_like(h), (h @ w)[:, :3], (0, 0)), h[:, :3], (0, 2)), None,
    ),
    "into what is no zero": lambda w, h, _: (update(h, (h @ w)[:, :3], (0, 0)), None),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_what_the_kernel_runs(name):
    assert told(FITS[name]) is not None


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_it_does_not_run(name):
    assert told(OTHERWISE[name]) is None


def test_the_head_of_the_numbers():
    found = told(lambda w, h, x: (snp.tanh(h @ w + x[0]), h), snp.ones((4, ROWS, WIDTH)))
    wide, members, rows, length, reverse, apart, consts, carry, stacks = found.numbers[:9]
    assert (wide, members, rows, length, reverse, apart) == (0, 1, ROWS, 4, 0, 0)
    assert (consts, carry, stacks) == (1, 1, 1)
    assert found.members == 0


@pytest.mark.parametrize(("width", "rows"), [(0, 3), (6, 0)])
def test_nothing_is_run_where_nothing_is(width, rows):
    assert told(FITS["plain"], width=width, rows=rows) is None


def test_products_of_rows_by_what_is_fixed():
    def products(f):
        graph = make_graph(f)(snp.ones((5, 6)), snp.ones((3, 5)))
        fixed = lambda a: a is graph.inputs[0]
        found = [product_of(e, fixed) for e in graph.equations]
        return [p for p in found if p is not None]

    (one,) = products(lambda w, x: x @ w)
    assert (one.shared, one.summed, one.lead) == (0, 0, (3,))
    assert products(lambda w, x: w.T @ x.T) == []  # columns come first
    assert products(lambda w, x: x @ x.T) == []  # nothing is fixed
    assert products(lambda w, x: w @ w.T) == []  # all is


@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_other_dtypes_are_left(dtype):
    run = lambda w, h: st.lax.scan(lambda h, _: (h @ w, None), h, None, length=4)
    graph = make_graph(run)(np.ones((6, 6), dtype), np.ones((3, 6), dtype))
    one = graph.equations[-1].primitive
    assert instructions(one.body, one.consts, one.carry, one.length, one.reverse) is None


def test_the_order_of_what_is_added_side_by_side_is_no_matter():
    """Either is written to its columns, where neither has to be put between zeros before."""
    one = lambda w, h: pad((h @ w)[:, :4], 0.0, (2, 0, 0))
    other = lambda h: pad(h[:, :2], 0.0, (0, 4, 0))
    first = told(lambda w, h, _: (one(w, h) + other(h), None))
    second = told(lambda w, h, _: (other(h) + one(w, h), None))
    over = told(lambda w, h, _: (one(w, h) + pad(h[:, :3], 0.0, (0, 3, 0)), None))
    assert len(first.numbers) == len(second.numbers) < len(over.numbers)


@pytest.mark.parametrize(("lead", "members", "rows"), [((), 1, 3), ((2,), 2, 3), ((2,), 2, 1)])
def test_axes_of_members_are_told_where_there_are_several(lead, members, rows):
    w, h = snp.ones((*lead, WIDTH, WIDTH)), snp.ones((*lead, rows, WIDTH))
    run = lambda w, h: st.lax.scan(lambda h, _: (snp.tanh(h @ w), None), h, None, length=4)
    (equation,) = [e for e in make_graph(run)(w, h).equations if e.primitive.name == "scan"]
    one = equation.primitive
    found = instructions(one.body, one.consts, one.carry, one.length, one.reverse)
    assert found.numbers[1:3] == (members, rows)
    assert found.members == len(lead)
