"""Programs over rows in the kernel: their values, what it is told to do, and what it has not."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.core.program import Program
from stretto._engine.kernels import kernels
from stretto._engine.ops import row_program
from stretto._engine.ops.fused_rows import FusedRows
from stretto._engine.ops.row_program import Space, Views, instructions

ROWS, COLUMNS = 5, 70
SPACE = Space((ROWS, COLUMNS), 1, np.dtype(np.float32))


def drawn(*shape):
    """Numbers between -2 and 2, some of which are -0."""
    x = np.random.default_rng(sum(shape)).uniform(-2, 2, shape).astype(np.float32)
    return np.where(np.abs(x) < 0.1, np.float32(-0.0), x)


X, Y = drawn(ROWS, COLUMNS), drawn(ROWS, COLUMNS + 1)[:, 1:].copy()
OF_ROWS, OF_COLUMNS = drawn(ROWS), drawn(COLUMNS)
LABELS = np.array([3, 0, COLUMNS - 1, -1, COLUMNS], np.int32)


def counting(axis, *shape):
    return st.lax.broadcasted_iota("int32", shape, axis)


def up(s):
    return s[:, None]


def total(x):
    return x.sum(-1)


PROGRAMS = {
    "a sum": (total, X),
    "the greatest": (lambda x: x.max(-1), X),
    "the least": (lambda x: x.min(-1), X),
    "a sum over rows": (lambda x: (x + 1).sum(0), X),
    "rows and a sum over rows": (lambda x: ((x + 1).sum(0), x * 3), X),
    "the first column": (lambda x: total(x * x[:, :1]), X),
    "a softmax": (lambda x: (e := snp.exp(x - up(x.max(-1)))) / up(total(e)), X),
    "a variance": (lambda x: total(snp.square(x - up(total(x)) * 0.01)), X),
    "a sum of squares": (lambda x: total(x**2), X),
    "a sum of products": (lambda x, y: total(x * y), X, Y),
    "a sum of products by numbers": (lambda x, s: total(up(s) * x), X, OF_ROWS),
    "a sum of negatives": (lambda x: total(-x), X),
    "a sum of differences": (lambda x, y: total(x - y), X, Y),
    "a sum of differences squared": (lambda x, y: total((x - y) * (x - y)), X, Y),
    "a sum of differences from a number": (lambda x, s: total(up(s) - x), X, OF_ROWS),
    "an exponential of a difference": (lambda x, y: total(snp.exp(x - y)), X, Y),
    "a product of three": (lambda x, y: up(total(x)) * x * y, X, Y),
    "a difference times": (lambda x, y: y * (x - up(total(x))), X, Y),
    "a sum times": (lambda x, y: (up(total(x)) + x) * y, X, Y),
    "a product and": (lambda x, y: y + up(total(x)) * x, X, Y),
    "a sum of three": (lambda x, y: x + up(total(x)) + y, X, Y),
    "a product less": (lambda x, y: x * up(total(x)) - y, X, Y),
    "less a product": (lambda x, y: y - x * up(total(x)), X, Y),
    "a square of a product": (lambda x: (p := x * up(total(x))) * p, X),
    "a square of a difference": (lambda x, y: (d := up(total(x)) * y - x) * d, X, Y),
    "what is read twice": (lambda x, y: (p := x * up(total(x))) * (y + p), X, Y),
    "what is given too": (lambda x, y: ((p := x * up(total(x))), p + y), X, Y),
    "what waits": (lambda x, y: x * y * up(total(x)), X, Y),
    "numbers a row": (
        lambda x: x * up(snp.log(snp.exp(t := total(x) * 0.01)) + snp.sqrt(t * t) + snp.expm1(t)),
        X,
    ),
    "more numbers a row": (
        lambda x: x * up(st.lax.rsqrt((t := total(x)) * t + 1.0) + snp.log1p(t * t)), X,
    ),
    "comparisons": (
        lambda x, y: total(
            snp.where((x > y) | (x <= -1) & ~(y >= 1), x, y) + snp.where((x < 0) | (x == 1), 2, y)
        ),
        X, Y,
    ),
    "what is finite": (lambda x: total(snp.where(snp.isfinite(x) & (x != 1), x, 0)), X),
    "choices by a mask": (lambda x, m: total(snp.where(m, x, 3)), X, Y > 0),
    "choices by row": (lambda x, m: total(snp.where(up(m), x, 3)), X, OF_ROWS > 0),
    "choices by column": (lambda x, m: total(snp.where(m, x, 3)), X, OF_COLUMNS > 0),
    "a choice by a number": (lambda x, m: total(st.lax.select(m, x, -x)), X, np.array(True)),
    "counted": (lambda x: total((x > 0).astype(x.dtype)), X),
    "extremes": (lambda x, y: total(snp.maximum(x, y) * snp.minimum(x, 0.5) / (2 + abs(y))), X, Y),
    "labels": (lambda x, n: total(snp.where(counting(0, COLUMNS) == up(n), x, 0)), X, LABELS),
    "labels first": (lambda x, n: total(snp.where(up(n) == counting(0, COLUMNS), x, 0)), X, LABELS),
    "numbers a column": (lambda x, c: total(x * c), X, OF_COLUMNS),
    "numbers a row and a column": (lambda x, s, c: total(x * up(s) + c), X, OF_ROWS, OF_COLUMNS),
    "a number": (lambda x, n: total(x * n), X, np.float32(3)),
    "a product by one": (lambda x: total(x * 1.0 - up(x.max(-1)) * 1.0), X),
    "a sum of numbers a row": (
        lambda x, s: x + up(total(snp.broadcast_to(up(s), x.shape))), X, OF_ROWS,
    ),
    "a sum of what is computed for a row": (
        lambda x: x + up(total(snp.broadcast_to(up(x.max(-1)), x.shape))), X,
    ),
    "numbers a row by one": (
        lambda x, s: total(x - snp.broadcast_to(up(s), x.shape) * 1.0), X, OF_ROWS,
    ),
    "sums of sums": (lambda x: total(x - up(total(x * up(x.max(-1))))), X),
    "several phases": (
        lambda x: (y := (d := x - up(total(x) * 0.01)) * up(total(d * d))) + up(y.max(-1)), X,
    ),
    "masks that are given": (lambda x: (x > up(total(x)), total(x) > 0), X),
    "what is given and read": (lambda x: ((y := x * up(total(x))), total(y), y + 1), X),
    "one array twice": (lambda b, x: total(x + up(b) + b), OF_ROWS, X[:, :ROWS].copy()),
}  # fmt: skip


def told(name, wide=False):
    """The program of a name, what the kernel is told, and what it reads."""
    f, *args = PROGRAMS[name]
    if wide:
        args = [a.astype(np.float64) if a.dtype == np.float32 else a for a in args]
    graph = make_graph(f)(*args)
    columns = ROWS if name == "one array twice" else COLUMNS
    space = Space((ROWS, columns), 1, np.dtype(np.float64 if wide else np.float32))
    views = Views({v: e for e in graph.equations for v in e.outputs})
    sums = []
    for e in graph.equations:
        found, (out,) = space.operation(e, views), e.outputs
        assert found or views.is_view(out) or views.iota(out, out.type.ndim - 1), e
        sums += [out] if found and found[1] == "sums" else []
    outs = sorted(graph.outputs, key=lambda v: v in sums)
    graph = Program(graph.inputs, graph.equations, outs, "rows")
    return graph, instructions(graph, space), args


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_their_operations_give(name, wide):
    with st.enable_x64(wide):
        graph, found, args = told(name, wide)
        op = FusedRows(graph, found)
        got = st.jit(op)(*args)
        bound = {"rtol": 1e-12 if wide else 1e-5, "atol": 1e-12 if wide else 2e-5}
        for a, b in zip(got, op.reference(*args), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, **bound)


def operations(found):
    """The kernel's operations in their order, without loads."""
    lines = np.array(found.numbers[-10 * found.numbers[21] :]).reshape(-1, 10)
    by_code = {code: name for name, code in row_program.CODES.items()}
    return " ".join([by_code[c] for c in lines[:, 0] if by_code[c] != "load"])


@pytest.mark.parametrize(
    ("name", "counts", "expected"),
    [
        ("a sum", (1, 0, 1, 2, 0), "sum"),
        ("the greatest", (1, 0, 1, 2, 0), "greatest"),
        ("the least", (1, 0, 1, 2, 0), "least"),
        ("a sum over rows", (2, 0, 0, 2, 1), "add add_up"),
        ("rows and a sum over rows", (2, 0, 0, 2, 2), "add add_up mul"),
        ("the first column", (1, 0, 2, 4, 0), "first sum_of_products"),
        ("a softmax", (1, 1, 2, 6, 0), "greatest exp_difference sum div"),
        ("a variance", (1, 0, 3, 4, 1), "sum mul sum_of_squared_differences"),
        ("a sum of squares", (1, 0, 1, 2, 0), "sum_of_products"),
        ("a sum of products", (2, 0, 1, 2, 0), "sum_of_products"),
        ("a sum of products by numbers", (1, 0, 2, 2, 0), "sum_of_products"),
        ("a sum of negatives", (1, 0, 1, 2, 1), "sum_of_products"),
        ("a sum of differences", (2, 0, 1, 2, 0), "sum_of_differences"),
        ("a sum of differences squared", (3, 0, 1, 2, 0), "sub sub_mul sum"),
        ("a sum of differences from a number", (2, 0, 2, 2, 0), "sub sum"),
        ("an exponential of a difference", (3, 0, 1, 2, 0), "exp_difference sum"),
        ("a product of three", (3, 0, 1, 4, 0), "sum mul_mul"),
        ("a difference times", (3, 0, 1, 4, 0), "sum sub_mul"),
        ("a sum times", (3, 0, 1, 4, 0), "sum add_mul"),
        ("a product and", (3, 0, 1, 4, 0), "sum mul_add"),
        ("a sum of three", (3, 0, 1, 4, 0), "sum add_add"),
        ("a product less", (2, 0, 1, 4, 0), "sum mul sub"),
        ("less a product", (2, 0, 1, 4, 0), "sum mul sub"),
        ("a square of a product", (2, 0, 1, 4, 0), "sum mul mul"),
        ("a square of a difference", (2, 0, 1, 4, 0), "sum mul sub mul"),
        ("what is read twice", (2, 0, 1, 4, 0), "sum mul add_mul"),
        ("what is given too", (2, 0, 1, 4, 0), "sum mul add"),
        ("what waits", (2, 1, 1, 4, 0), "mul sum mul"),
        ("numbers a row", (2, 0, 8, 4, 1), "sum mul mul sqrt add expm1 add mul"),
        ("more numbers a row", (2, 0, 7, 4, 1), "sum mul add rsqrt mul log1p add mul"),
        ("comparisons", (5, 0, 1, 2, 4), "gt le ge not and or select lt eq or select add sum"),
        ("what is finite", (3, 0, 1, 2, 2), "is_finite ne and select sum"),
        ("choices by a mask", (3, 0, 1, 2, 1), "select sum"),
        ("choices by row", (2, 0, 2, 2, 1), "select sum"),
        ("choices by column", (3, 0, 1, 2, 1), "select sum"),
        ("a choice by a number", (2, 0, 2, 2, 0), "neg select sum"),
        ("counted", (2, 0, 1, 2, 1), "gt number sum"),
        ("extremes", (4, 0, 1, 2, 2), "max min mul abs add div sum"),
        ("labels", (2, 0, 2, 2, 1), "is_column select sum"),
        ("labels first", (2, 0, 2, 2, 1), "is_column select sum"),
        ("numbers a column", (2, 0, 1, 2, 0), "sum_of_products"),
        ("numbers a row and a column", (3, 0, 2, 2, 0), "mul_add sum"),
        ("a number", (1, 0, 2, 2, 0), "sum_of_products"),
        ("a product by one", (1, 0, 2, 4, 0), "greatest sum_of_differences"),
        ("a sum of numbers a row", (2, 0, 2, 4, 0), "copy sum add"),
        ("a sum of what is computed for a row", (2, 0, 2, 6, 0), "greatest copy sum add"),
        ("numbers a row by one", (2, 0, 2, 2, 1), "mul sum_of_differences"),
        ("sums of sums", (1, 0, 3, 6, 0), "greatest sum_of_products sum_of_differences"),
        (
            "several phases",
            (1, 1, 4, 8, 1),
            "sum mul sum_of_squared_differences sub_mul greatest add",
        ),
        ("masks that are given", (2, 0, 3, 4, 1), "sum sum gt gt"),
        ("what is given and read", (2, 0, 2, 4, 1), "sum mul sum add"),
        ("one array twice", (3, 0, 2, 2, 0), "add_add sum"),
    ],
)
def test_operations_are_joined_and_values_kept_no_longer_than_needed(name, counts, expected):
    """Counts: of places for chunks, for whole rows, for scalars; of sections; of literals."""
    _, found, _ = told(name)
    assert operations(found) == expected
    assert found.numbers[16:21] == counts


def kinds_of(f, *args, tail=1):
    """What the kernel does for the operations of a program over rows."""
    graph = make_graph(f)(*args)
    views = Views({v: e for e in graph.equations for v in e.outputs})
    space = Space(args[0].shape, tail, args[0].dtype)
    return [space.operation(e, views) for e in graph.equations]


DEEP = np.zeros((2, 3, 4), np.float32)
I32 = np.zeros((ROWS, COLUMNS), np.int32)


@pytest.mark.parametrize(
    ("f", "args", "tail", "expected"),
    [
        (lambda x: x.sum(-1), [DEEP], 1, ("sum", "scalars")),
        (lambda x: x.sum(-1), [DEEP], 2, None),
        (lambda x: x.sum((1, 2)), [DEEP], 2, ("sum", "scalars")),
        (lambda x: x.max((1, 2)), [DEEP], 2, ("greatest", "scalars")),
        (lambda x: x.sum((0, 1)), [DEEP], 1, ("add_up", "sums")),
        (lambda x: x.sum(0), [DEEP], 2, ("add_up", "sums")),
        (lambda x: x.sum(0), [DEEP], 1, None),
        (lambda x: x.max(0), [X], 1, None),
        (lambda x: x.sum(), [X], 1, None),
        (lambda x, y: y.sum(-1), [X, X[:, 1:]], 1, None),
        (lambda x, y: y.sum(-1), [X, I32], 1, None),
        (lambda x: x[:, :1], [X], 1, ("first", "scalars")),
        (lambda x: x[:, :1, :1], [DEEP], 2, ("first", "scalars")),
        (lambda x: x[:, 1:2], [X], 1, None),
        (lambda x: x[:, :2], [X], 1, None),
        (lambda x: x[:1, :1], [X], 1, None),
        (lambda x, y: y[:, :1], [X, I32], 1, None),
        (lambda x, y: y[:, :1], [X, X[:, 1:]], 1, None),
        (lambda x: st.lax.top_k(x, COLUMNS)[0], [X], 1, None),
        (lambda x, y: y + y, [X, I32], 1, None),
        (lambda x, y: y & y, [X, I32], 1, None),
        (lambda x, y: y > 0, [X, I32], 1, None),
        (lambda x, y: y + y, [X, X[:, 1:]], 1, None),
        (lambda x, y: y == y, [X, I32 > 0], 1, None),
        (st.lax.log, [X], 1, ("log", "rows")),
        (lambda x, s: st.lax.log(s), [X, OF_ROWS], 1, ("log", "scalars")),
        (lambda x, s: st.lax.rsqrt(s), [X, OF_ROWS[:, None]], 1, ("rsqrt", "scalars")),
        (snp.square, [X], 1, ("square", "rows")),
        (lambda x: st.lax.integer_pow(x, 3), [X], 1, None),
        (st.lax.sin, [X], 1, None),
        (lambda x: x.astype("int32"), [X], 1, None),
        (st.lax.is_finite, [X], 1, ("is_finite", "rows")),
        (lambda x, m: ~m, [X, X > 0], 1, ("not", "rows")),
        (lambda x, y: y == y, [X, I32], 1, None),
    ],
)
def test_what_the_kernel_does_for_an_operation(f, args, tail, expected):
    assert kinds_of(f, *args, tail=tail)[-1] == expected


@pytest.mark.parametrize(
    ("f", "x", "tail", "found"),
    [
        (lambda n: counting(1, ROWS, COLUMNS) == n[:, None], X, 1, True),
        (lambda n: counting(0, ROWS, COLUMNS) == n[:, None], X, 1, False),
        (lambda n: counting(1, ROWS, COLUMNS) == counting(1, ROWS, COLUMNS), X, 1, False),
        (lambda n: counting(0, COLUMNS) == counting(0, COLUMNS), X, 1, False),
        (lambda n: counting(0, ROWS) == n, X, 1, False),
        (lambda n: counting(2, 2, 3, 4) == n[:2, None, None], DEEP, 1, True),
        (lambda n: counting(2, 2, 3, 4) == n[:2, None, None], DEEP, 2, False),
    ],
)
def test_columns_that_are_compared_with_labels(f, x, tail, found):
    graph = make_graph(f)(LABELS)
    views = Views({v: e for e in graph.equations for v in e.outputs})
    kind = Space(x.shape, tail, x.dtype).operation(graph.equations[-1], views)
    assert kind == (("is_column", "rows") if found else None)


def held(count):
    """A program of so many values that are there at once."""

    def f(x):
        values = [abs(x)]
        for _ in range(count):
            values.append(abs(values[-1]))
        return total(sum(values[::-1], x))

    return instructions(make_graph(f)(X), SPACE)


def test_the_most_values_that_the_kernel_has_room_for():
    places = [found and found.numbers[16] for found in map(held, range(90, 100))]
    assert 96 in places
    assert places[places.index(96) + 1 :] == [None] * (9 - places.index(96))


@pytest.mark.parametrize("count", [96, 97])
def test_the_most_arrays_that_are_given(count):
    found = instructions(make_graph(lambda x: [x * up(total(x))] * count)(X), SPACE)
    assert (found is None) == (count == 97)


@pytest.mark.parametrize(("axes", "fits"), [(4, True), (5, False)])
def test_the_most_axes_that_cannot_be_one(axes, fits):
    """Rows along axes of which an array repeats every other one."""
    whole, some = (2,) * axes, (2, 1, 2, 1, 2)[:axes]
    arrays = [np.zeros((*lead, COLUMNS), np.float32) for lead in (whole, some)]
    graph = make_graph(lambda x, y: (x * y).sum(-1))(*arrays)
    found = instructions(graph, Space((*whole, COLUMNS), 1, np.dtype(np.float32)))
    assert (found is not None) == fits
