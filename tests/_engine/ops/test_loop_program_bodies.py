"""Bodies of loops that the kernel runs, with the values of the loop, and others."""

from functools import partial

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.higher_order.fused_scan import FusedScan
from stretto._engine.kernels import kernels
from stretto._engine.ops.loop_program import instructions
from stretto._engine.ops.row_program import View

TURNS, ROWS, WIDTH = 4, 3, 6
update, slice_of, where, tanh = (
    st.lax.dynamic_update_slice,
    st.lax.dynamic_slice,
    snp.where,
    snp.tanh,
)


def drawn(*shape, seed=0):
    """Numbers, some of which are -0."""
    x = np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32) / 2
    return np.where(np.abs(x) < 0.06, np.float32(-0.0), x)


W, H = drawn(WIDTH, WIDTH), drawn(ROWS, WIDTH)
X, OF_ROWS, OF_COLUMNS, OF_TURNS = [
    drawn(TURNS, *shape, seed=9) for shape in ((ROWS, WIDTH), (ROWS,), (WIDTH,), ())
]


def loop_of(body, *stacks, carry=H, w=W, reverse=False):
    """A loop of ``body(w, carry, *stacks)``, its instructions, and what it reads."""
    run = lambda w, carry, *xs: st.lax.scan(
        lambda c, x: body(w, c, *x), carry, xs, length=TURNS, reverse=reverse
    )
    graph = make_graph(run)(w, carry, *stacks)
    (equation,) = [e for e in graph.equations if e.primitive.name == "scan"]
    values = dict(zip(graph.inputs, st.tree.leaves((w, carry, stacks)), strict=False))
    loop = equation.primitive
    found = instructions(loop.body, loop.consts, loop.carry, loop.length, loop.reverse)
    return loop, found, [values.get(v) for v in equation.inputs]


def plain(f, *stacks, **options):
    """A loop whose carry is a stack too."""
    return partial(loop_of, lambda w, h, *x: ((out := f(h @ w, h, *x)), out), *stacks, **options)


def apart(f, *stacks, **options):
    """A loop whose body gives carries and stacks."""
    return partial(loop_of, f, *stacks, **options)


def zeros():
    return snp.zeros((ROWS, WIDTH), "float32")


def put(x, at):
    return update(zeros(), x, (0, at))


def between(x, low, high, value=0.0, inside=0, rows=(0, 0, 0)):
    return st.lax.pad(x, snp.float32(value), [rows, (low, high, inside)])


def joined(*parts):
    return snp.concatenate(parts, -1)


BODIES = {
    "rows": plain(lambda y, h, x: y + x, X),
    "a number a row": plain(lambda y, h, x: y + x[:, None], OF_ROWS),
    "a function of a number a row": plain(lambda y, h, x: y * tanh(x)[:, None], OF_ROWS),
    "a number a column": plain(lambda y, h, x: tanh(y + x), OF_COLUMNS),
    "a number a turn": plain(lambda y, h, x: y * x, OF_TURNS),
    "a function of a number a turn": plain(lambda y, h, x: y * tanh(x), OF_TURNS),
    "a number": plain(lambda y, h: y + snp.full_like(h, 2.0)),
    "a number in each row": plain(lambda y, h: y + snp.full((ROWS, 1), 2.0, "float32")),
    "the first column": plain(lambda y, h: y * h[:, :1]),
    "one column": plain(lambda y, h: y * h[:, 2:3]),
    "one column of several values": plain(lambda y, h: y * h[:, 2:3] + h[:, 5:] * y[:, 1:2]),
    "a column of conditions": plain(lambda y, h: where((y > 0)[:, 2:3], y, h)),
    "conditions": plain(lambda y, h: where((y > 0) & ~(h > 0.3) | (h < -0.2), y, 2 * h)),
    "counted": plain(lambda y, h: (y > 0).astype("float32") - h),
    "squares": plain(lambda y, h: snp.square(y) - st.lax.integer_pow(h, 2)),
    "curves": plain(lambda y, h: tanh(y) - st.nn.functional.sigmoid(h)),
    "a mask": plain(lambda y, h, x: where(x, y, h), X > 0),
    "a mask of rows": plain(lambda y, h, x: where(x[:, None], y, h), OF_ROWS > 0),
    "a constant condition": plain(lambda y, h: st.lax.select(snp.asarray(True), y, h)),
    "what nothing reads": apart(lambda w, h: (h @ w, (snp.sin(h), h)[1])),
    "two products": apart(lambda w, h: (tanh(h @ w) @ w, h)),
    "a product of some columns": apart(lambda w, h: (joined(h[:, 3:], h[:, :3]) @ w, h)),
    "one product read twice": apart(lambda w, h: ((y := h @ w), y)),
    "a stack of zeros": apart(lambda w, h: (h @ w, zeros())),
    "a stack of numbers a row": apart(lambda w, h, x: (h @ w, tanh(x)), OF_ROWS),
    "a stack of conditions": apart(lambda w, h: (h @ w, h > 0)),
    "a stack of a mask": apart(lambda w, h, x: (h @ w, x), X > 0),
    "a stack of one column": apart(lambda w, h: (h @ w, h[:, 3:4])),
    "a stack of some columns": apart(lambda w, h: (h @ w, (h @ w)[:, 1:3])),
    "a stack of what is carried": apart(lambda w, h: (h @ w, (h, h))),
    "zeros in front": plain(lambda y, h: between(y[:, :4], 2, 0)),
    "zeros behind": plain(lambda y, h: between(y[:, :4], 0, 2)),
    "zeros around": plain(lambda y, h: between(y[:, :4], 1, 1)),
    "put": plain(lambda y, h: put(y[:, :3], 1)),
    "put beyond the end": plain(lambda y, h: put(y[:, :3], 5)),
    "put before the first": plain(lambda y, h: put(y[:, :3], -9)),
    "put in order": plain(lambda y, h: update(put(y[:, :2], 0), h[:, :3], (0, 3))),
    "put the other way": plain(lambda y, h: update(put(y[:, :2], 4), h[:, :3], (0, 0))),
    "put over": plain(lambda y, h: update(put(y[:, :2], 1), h[:, :2], (0, 1))),
    "put over, beside another": plain(
        lambda y, h: update(update(put(y[:, :2], 0), h[:, :2], (0, 3)), y[:, 2:4], (0, 0))
    ),
    "added": plain(lambda y, h: zeros().at[:, 1:4].add(y[:, :3])),
    "added side by side": plain(
        lambda y, h: zeros().at[:, 1:4].add(y[:, :3]).at[:, 4:].add(h[:, :2])
    ),
    "added to what was put": plain(lambda y, h: put(y[:, :2], 0).at[:, 2:4].add(h[:, :2])),
    "a sum side by side": plain(lambda y, h: between(y[:, :4], 2, 0) + between(h[:, :2], 0, 4)),
    "a sum with a gap": plain(lambda y, h: between(y[:, :2], 4, 0) + between(h[:, :2], 0, 4)),
    "a sum of three": plain(
        lambda y, h: between(y[:, :2], 4, 0) + between(h[:, :2], 0, 4) + put(y[:, 2:4], 2)
    ),
    "a sum over each other": plain(lambda y, h: between(y[:, :4], 2, 0) + between(h[:, :3], 0, 3)),
    "joined": plain(lambda y, h: joined(h[:, 2:], y[:, :1], h[:, :1])),
    "columns of what is joined": plain(lambda y, h: y + joined(h, y, y)[:, 7:13]),
    "a part of what was put": plain(lambda y, h: y - put(between(y[:, :4], 1, 1)[:, 2:4], 4)),
    "all of what was put": plain(lambda y, h: y - put(between(y[:, :4], 1, 1)[:, 1:5], 2)),
    "more than what was put": plain(lambda y, h: y - put(put(y[:, :2], 2)[:, 1:5], 2)),
    "zeros before what was put": plain(lambda y, h: y - put(put(y[:, :2], 2)[:, :2], 2)),
    "zeros behind what was put": plain(lambda y, h: y - put(put(y[:, :2], 2)[:, 4:], 2)),
    "a part of what was added": plain(
        lambda y, h: joined(zeros().at[:, 1:4].add(y[:, :3])[:, 1:3], h[:, 2:])
    ),
    "columns beyond the end": plain(lambda y, h: put(slice_of(y, (0, 5), (ROWS, 3)), 2)),
    "columns before the first": plain(lambda y, h: put(slice_of(y, (0, -9), (ROWS, 3)), 2)),
    "two carries": apart(lambda w, c: ((c[1] @ w, c[0]), c[0] * c[1]), carry=(H, X[0])),
    "carries that change places": apart(lambda w, c: ((c[1], c[0] @ w), ()), carry=(H, X[0])),
    "a carry of numbers a row": apart(
        lambda w, c: ((c[0] @ w, tanh(c[1])), c[1]), carry=(H, H[:, 0])
    ),
    "a carry that begins again": apart(lambda w, c: ((c[0] @ w, zeros()), c[1]), carry=(H, H)),
    "no axis of rows": plain(lambda y, h, x: tanh(y + x), OF_COLUMNS, carry=H[0]),
    "rows of two axes": plain(
        lambda y, h, x: tanh(y + x), drawn(TURNS, 2, ROWS, WIDTH), carry=drawn(2, ROWS, WIDTH)
    ),
    "members": plain(
        lambda y, h, x: tanh(y + x),
        drawn(TURNS, 2, ROWS, WIDTH),
        carry=drawn(2, ROWS, WIDTH),
        w=drawn(2, WIDTH, WIDTH),
    ),
    "members of what is read": plain(
        lambda y, h, x: tanh(y + x[:, None]),
        drawn(TURNS, 2, WIDTH),
        carry=drawn(2, ROWS, WIDTH),
        w=drawn(2, WIDTH, WIDTH),
    ),
}
OTHERWISE = {
    "an operation of two results": plain(lambda y, h: st.lax.top_k(y, WIDTH)[0]),
    "another power": plain(lambda y, h: st.lax.integer_pow(y, 3)),
    "every other column": plain(lambda y, h: joined(y[:, ::2], h[:, ::2])),
    "rows in another order": plain(lambda y, h: snp.concatenate([y[1:], h[:1]], 0)),
    "some rows": plain(lambda y, h: snp.concatenate([y[:1], h[1:]], 0)),
    "equal conditions": plain(lambda y, h: where((y > 0) == (h > 0), y, h)),
    "numbers of conditions": plain(lambda y, h: where(y.astype("int32") > 0, y, h)),
    "a number that is a condition": plain(lambda y, h, x: st.lax.select(x > 0, y, h), OF_TURNS),
    "a counter": apart(lambda w, c: ((c[0] @ w, c[1] + 1), ()), carry=(H, np.int32(0))),
    "a number that is carried": apart(lambda w, c: ((c[0] @ w, c[1]), ()), carry=(H, OF_TURNS[0])),
    "a mask that is carried": apart(lambda w, c: ((c[0] @ w, c[1]), ()), carry=(H, H > 0)),
    "integers that are read": plain(lambda y, h, x: y * x.astype("float32"), (X > 0) * 1),
    "integers that are given": apart(lambda w, h, x: (h @ w, x), (X > 0) * 1),
    "a number a turn that is given": apart(lambda w, h, x: (h @ w, x), OF_TURNS),
    "a column that is repeated in a product": apart(
        lambda w, h: (snp.broadcast_to(h[:, 1:2], h.shape) @ w, ())
    ),
    "rows that some share": plain(lambda y, h, x: y + x, X, carry=drawn(2, ROWS, WIDTH)),
    "a row of what is computed for a row": plain(
        lambda y, h, x: y + tanh(x), drawn(TURNS, 6), carry=drawn(6, 6)
    ),
    "columns turned": plain(lambda y, h, x: y + x[:, ::-1], X),
    "products of rows of other shapes": apart(
        lambda w, c: ((c[0] @ w, c[1] @ w), ()), carry=(H, H[:2])
    ),
    "zeros among rows": plain(lambda y, h: between(y, 0, 0, rows=(1, -1, 0))),
    "-0 around": plain(lambda y, h: between(y[:, :4], 1, 1, -0.0)),
    "ones around": plain(lambda y, h: between(y[:, :4], 1, 1, 1.0)),
    "gaps": plain(lambda y, h: between(y[:, :3], 1, 0, inside=1)),
    "cut in front": plain(lambda y, h: between(y, -1, 1)),
    "cut behind": plain(lambda y, h: between(y, 1, -1)),
    "put among rows": plain(lambda y, h: update(zeros(), y[:1], (1, 0))),
    "put on what is there": plain(lambda y, h: update(h, y[:, :3], (0, 0))),
    "put partly over": plain(lambda y, h: update(put(y[:, :3], 0), h[:, :3], (0, 2))),
    "put partly over, before": plain(lambda y, h: update(put(y[:, :3], 2), h[:, :3], (0, 0))),
    "put where a number says": plain(
        lambda y, h, x: update(zeros(), y[:, :3], (0, x)), np.arange(TURNS, dtype="int32")
    ),
    "columns that a number says": plain(
        lambda y, h, x: put(slice_of(y, (0, x), (ROWS, 3)), 0), np.arange(TURNS, dtype="int32")
    ),
    "added to what is there": plain(lambda y, h: h.at[:, 1:4].add(y[:, :3])),
    "added partly over": plain(lambda y, h: put(y[:, :3], 0).at[:, 2:4].add(h[:, :2])),
    "added to one row": plain(lambda y, h: zeros().at[1].add(y[0])),
    "added to some rows": plain(lambda y, h: zeros().at[1:].add(y[1:])),
    "added to chosen columns": plain(lambda y, h: zeros().at[:, np.array([0, 2])].add(y[:, :2])),
}


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_bodies_give_what_the_loop_gives(name, reverse):
    loop, found, args = BODIES[name](reverse=reverse)
    assert found is not None
    got = st.jit(FusedScan(loop, found))(*args)
    for a, b in zip(got, loop.reference(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("name", OTHERWISE)
def test_bodies_that_are_left(name):
    assert OTHERWISE[name]()[1] is None


def counts(found):
    """How many values, places in scratch, matrices, literals and instructions there are."""
    return found.numbers[10:15]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a number", (4, 2, 1, 1, 4)),
        ("a number in each row", (4, 2, 1, 1, 4)),
        ("a function of a number a turn", (5, 4, 1, 0, 6)),
        ("the first column", (3, 2, 1, 0, 4)),  # is read where it lies
        ("one column of several values", (6, 4, 1, 0, 7)),
        ("conditions", (14, 5, 1, 4, 11)),
        ("what nothing reads", (2, 0, 1, 0, 3)),
        ("two products", (4, 2, 1, 0, 5)),
        ("one product read twice", (2, 1, 1, 0, 3)),
        ("a stack of what is carried", (2, 0, 1, 0, 4)),
        ("a stack of some columns", (3, 1, 1, 0, 4)),
        ("zeros in front", (4, 2, 1, 1, 5)),  # one copy of zeros
        ("zeros around", (4, 2, 1, 1, 6)),
        ("put over", (4, 2, 1, 1, 6)),  # what is covered is not copied
        ("put over, beside another", (4, 2, 1, 1, 7)),
        ("a sum side by side", (4, 2, 1, 1, 5)),
        ("a sum with a gap", (4, 2, 1, 1, 6)),
        ("a sum over each other", (6, 4, 1, 1, 8)),
        ("columns of what is joined", (4, 3, 1, 0, 7)),
        ("a part of what was put", (5, 3, 1, 1, 6)),  # is read where it was
        ("all of what was put", (5, 3, 1, 1, 6)),
        ("more than what was put", (6, 4, 1, 1, 9)),
        ("zeros before what was put", (5, 3, 1, 1, 7)),
        ("zeros behind what was put", (5, 3, 1, 1, 7)),
        ("a carry of numbers a row", (4, 0, 1, 0, 5)),
        ("members of what is read", (5, 4, 1, 0, 6)),
    ],
)
def test_no_more_is_done_than_is_needed(name, expected):
    assert counts(BODIES[name]()[1]) == expected


def chain(count):
    """A loop of one value after the other."""

    def f(y, h):
        for _ in range(count):
            y = tanh(y)
        return y

    return plain(f)()[1]


def at_once(count):
    """A loop of values that are all there until the last one is."""

    def f(y, h):
        values = [tanh(y)]
        for _ in range(count):
            values.append(tanh(values[-1]))
        return sum(values[::-1], h)

    return plain(f)()[1]


def of_stacks(count):
    return plain(lambda y, h, *xs: sum(xs, y), *[X] * count)()[1]


def giving(count):
    """A loop of so many results, the carry among them."""
    return apart(lambda w, h: (h @ w, (h,) * (count - 1)))()[1]


def of_matrices(count):
    """A loop of products by matrices, each as it is and turned."""
    times = lambda h, w, axis: st.lax.dot_general(h, w, (((1,), (axis,)), ((), ())))
    body = lambda w, h: (sum([times(h, m, axis) for m in w for axis in (0, 1)]), ())
    return apart(body, w=[W] * (count // 2))()[1]


@pytest.mark.parametrize(
    ("loop", "most", "place", "there"),
    [(chain, 254, 0, 256), (at_once, 124, 1, 128), (of_matrices, 64, 2, 64)],
)
def test_the_most_that_the_kernel_has_room_for(loop, most, place, there):
    assert counts(loop(most))[place] == there
    assert loop(most + 2) is None


@pytest.mark.parametrize(("loop", "most"), [(of_stacks, 62), (giving, 64)])
def test_the_most_arrays_that_are_read_and_written(loop, most):
    assert loop(most) is not None
    assert loop(most + 1) is None


STACK = TURNS, 2, ROWS, WIDTH
OWN, COUNT = (2 * ROWS * WIDTH, ROWS * WIDTH, WIDTH, 1), ROWS * WIDTH


@pytest.mark.parametrize(
    ("strides", "known"),
    [
        (OWN, True),
        ((COUNT, TURNS * COUNT, WIDTH, 1), True),  # members in front of turns
        ((0, COUNT, WIDTH, 1), True),
        ((COUNT, TURNS * COUNT, 0, 1), True),
        ((2 * COUNT, COUNT, 1, ROWS), False),  # columns do not lie side by side
        ((2 * COUNT, COUNT, WIDTH, 0), False),
    ],
)
def test_stacks_with_members_in_front_are_read_where_they_lie(strides, known):
    """The numbers say how far turns, members and rows are apart, and that members are in front."""
    case = BODIES["members"]
    found = case()[1]
    assert found.members == 1
    numbers, told = found.by_members([View(STACK, strides)])
    assert told == [known]
    (at,) = [n for n, (a, b) in enumerate(zip(found.numbers, numbers, strict=True)) if a != b][:1]
    assert (at, numbers[at]) == (5, 1)
    want = strides[:3] if known else OWN[:3]
    assert numbers[17:20] == want and found.numbers[17:20] == OWN[:3]
    assert numbers[6:17] == found.numbers[6:17] and numbers[20:] == found.numbers[20:]


def test_a_stack_of_numbers_a_row_is_left_as_it_is():
    found = plain(
        lambda y, h, x: tanh(y + x[:, :, None]),
        drawn(TURNS, 2, ROWS),
        carry=drawn(2, ROWS, WIDTH),
        w=drawn(2, WIDTH, WIDTH),
    )()[1]
    numbers, told = found.by_members([View((TURNS, 2, ROWS), (ROWS, TURNS * ROWS, 1))])
    assert told == [False]
    assert numbers[6:] == found.numbers[6:]


@pytest.mark.parametrize(
    ("strides", "known"), [((72, 36, 18, 6, 1), True), ((72, 36, 6, 12, 1), False)]
)
def test_rows_of_two_axes_that_do_not_lie_as_one_are_not_known(strides, known):
    times = lambda h, w: st.lax.dot_general(h, w, (((3,), (1,)), ((0,), (0,))))
    found = apart(
        lambda w, h, x: (tanh(times(h, w) + x), ()),
        drawn(TURNS, 2, 2, ROWS, WIDTH),
        carry=drawn(2, 2, ROWS, WIDTH),
        w=drawn(2, WIDTH, WIDTH),
    )()[1]
    assert found.by_members([View((TURNS, 2, 2, ROWS, WIDTH), strides)])[1] == [known]
