"""Barriers where something would be computed again."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.graph import make_graph
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.core.shardings import Placement, SingleDeviceSharding
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.passes import barriers as pass_module
from stretto._engine.passes.barriers import (
    barrier_before_choices,
    materialize_shared,
    split_chained_products,
    store_beside_copies,
)
from stretto._engine.passes.prepare import for_platform, prepare
from stretto._engine.xla.device import Device
from stretto.laws import FULLY

pytestmark = pytest.mark.usefixtures("without_kernels")

CHOSEN_FROM = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def names(program):
    return [e.primitive.name for e in program.equations]


def barred(fun, *args):
    """How many barriers the program of a function gets, its inner programs' with it."""
    program = barrier_before_choices(prepare(make_graph(fun)(*args)))
    holders = [e.primitive for e in program.equations if e.primitive.holds_programs]
    inner = [n for holder in holders for p in holder.programs() for n in names(p)]
    return [*names(program), *inner].count("optimization_barrier")


def test_all_who_read_the_value_read_it_behind_the_barrier():
    program = make_graph(st.grad(lambda x: (x * x).max()))(CHOSEN_FROM)
    after = barrier_before_choices(program)
    assert names(after).count("optimization_barrier") == 1
    (barrier,) = [e for e in after.equations if e.primitive.name == "optimization_barrier"]
    readers = [e for e in after.equations if barrier.inputs[0] in e.inputs]
    assert readers == [barrier]
    compared = [e for e in after.equations if barrier.outputs[0] in e.inputs]
    assert {"reduce_max", "eq"} <= {e.primitive.name for e in compared}


def _compared_with_a_threshold(x):
    y = x * 2 + 1
    return snp.where(y < snp.sort(y)[:, -2:-1], -snp.inf, y)


def _compared_after_a_call(x):
    y = x * 2 + 1
    least = st.jit(lambda y: snp.sort(y)[:, 0])(y)
    return y == least[:, None]


def _compared_inside_a_call(x):
    y = x * 2 + 1
    least = snp.sort(y)[:, :1]
    return st.jit(lambda y, least: (y == least).sum())(y, least)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: snp.argmax(x * 2 + 1, 1),
        lambda x: (x * 2 + 1).max(1) == (x * 2 + 1).T,
        _compared_with_a_threshold,
        _compared_inside_a_call,
        _compared_after_a_call,
        lambda x: st.jit(lambda y: snp.argmin(y, 0))(x * 2 + 1),
        lambda x: lax.scan(lambda c, row: (c + snp.argmax(row * 2 + 1), c), 0, x),
        st.grad(lambda x: lax.cummax(x * 2 + 1).sum()),
        st.grad(lambda x: snp.sum(x * x + 1, 1).max()),
        lambda x: snp.argmax((x @ x.T).astype(snp.bfloat16), 0),
    ],
)
def test_what_kernels_would_compute_again_is_barred(fun):
    assert barred(fun, CHOSEN_FROM) == 1


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: snp.argmax(x, 1),  # an argument
        lambda x: snp.argmax(x.T, 1),
        lambda x: snp.argmax(snp.sort(x, 1), 1),  # a kernel of its own
        lambda x: (x * 2 + 1).max(),  # nothing is compared
        lambda x: snp.exp(x * 2 - (x * 2).max()),
        lambda x: snp.argmax((x * 2).astype(np.int32), 1),  # exact
        lambda x: (x * 2 + 1 > 3) & (x.max() > 1),
    ],
)
def test_what_is_in_memory_or_exact_is_not(fun):
    assert barred(fun, CHOSEN_FROM) == 0


def test_a_program_without_choices_is_left_as_it_is():
    plain = make_graph(lambda x: (x * 2).sum())(CHOSEN_FROM)
    assert barrier_before_choices(plain) is plain
    compared = make_graph(lambda x: snp.argmax(x * 2))(CHOSEN_FROM)
    assert barrier_before_choices(compared) is barrier_before_choices(compared)


def test_on_every_platform():
    program = prepare(make_graph(st.grad(lambda x: (x * 2).max()))(CHOSEN_FROM))
    for platform in ("gpu", "cpu"):
        device = Device(platform, 0)
        placement = Placement((device,), None, (SingleDeviceSharding(device),), (None,))
        assert "optimization_barrier" in names(for_platform(program, placement))
    assert "optimization_barrier" in names(for_platform(program, None))


def _outer(p, r, m):
    return p[:, None] * p[:, None] + r * r - m


FORMS = {
    "a product of rows and a matrix": lambda p, r, m: (p * p)[:, None] - m,
    "of columns": lambda p, r, m: r * r - m,
    "of columns and rows": lambda p, r, m: r * r - p[:, None],
    "of rows and columns": lambda p, r, m: (p * p)[:, None] - r,
    "squares and rows": lambda p, r, m: m * m + (p * p)[:, None],
    "both": _outer,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(8, 8), (33, 257)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_extrema_places_and_gradients_of_what_kernels_round_differently(form, sizes, axis):
    rng = np.random.default_rng(0)
    shapes = (sizes[:1], sizes[1:], sizes)
    args = [rng.standard_normal(shape, np.float32) for shape in shapes]
    fun = FORMS[form]

    def slopes(*args):
        return st.grad(lambda *args: snp.max(fun(*args), axis).sum(), (0, 1, 2))(*args)

    def chosen(*args):
        y = fun(*args)
        counts = (y == y.min(axis, keepdims=True)).sum(axis)
        return slopes(*args), snp.argmin(y, axis), counts

    def kept(*args):
        y = fun(*args)
        return (y >= snp.sort(y, -1)[:, -3:-2]).sum(-1)

    # As users compile: without LLVM's optimization kernels round alike more often.
    got, places, counts = st.jit(chosen, compiler_options=FULLY)(*args)
    for slope, want in zip(got, slopes(*args), strict=True):
        np.testing.assert_allclose(slope, want, rtol=1e-4, atol=1e-4)
    exact = fun(*[x.astype(np.float64) for x in args])
    found = np.take_along_axis(
        exact if axis is not None else exact.ravel(),
        np.expand_dims(np.asarray(places), axis) if axis is not None else np.ravel(places),
        axis,
    )
    np.testing.assert_allclose(found.ravel(), exact.min(axis).ravel(), rtol=1e-4, atol=1e-5)
    assert np.all(np.asarray(counts) == 1)
    assert np.all(np.asarray(st.jit(kept, compiler_options=FULLY)(*args)) == 3)


# Products that YNNPACK would put into one kernel, and compute again and again.


SIZE = 512
LEFT, RIGHT = snp.ones((8, SIZE)), snp.ones((SIZE, SIZE))


def barriers_between(f, *args):
    program = split_chained_products(st.make_graph(f)(*args))
    check(program)
    return sum(isinstance(e.primitive, OptimizationBarrier) for e in program.equations)


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda x, w: x @ w @ w, 1),
        (lambda x, w: x @ w.T @ w.T, 1),
        (lambda x, w: snp.tanh(x @ w + 1) @ w @ w, 2),
        (lambda x, w: snp.stack([x, x]) @ snp.stack([w, w]) @ snp.stack([w, w]), 1),
        (lambda x, w: x @ w, 0),
        (lambda x, w: x @ w @ w[:, :-1], 0),
        (lambda x, w: (x @ w).sum(0) + x @ w, 0),
        (lambda x, w: w @ (x @ w).T, 0),
    ],
    ids=["nn", "nt", "deep", "batch", "one", "oblong", "sum", "right"],
)
def test_square_matrices_behind_products(f, count):
    assert barriers_between(f, LEFT, RIGHT) == count


@pytest.mark.parametrize(("columns", "count"), [(64, 0), (255, 0), (256, 1)])
def test_small_matrices_are_one_block(columns, count):
    x, w = snp.ones((8, columns)), snp.ones((columns, columns))
    assert barriers_between(lambda x, w: x @ w @ w, x, w) == count


def test_bodies_of_loops_are_changed():
    def turns(x, w):
        return st.lax.fori_loop(0, 3, lambda _, x: x @ w @ w, x)

    program = st.make_graph(turns)(LEFT, RIGHT)
    assert "optimization_barrier" not in str(program)
    assert "optimization_barrier" in str(split_chained_products(program))


def test_no_kernel_has_both_products():
    """With the products at YNNPACK, as transposed weights have them."""
    f = st.jit(lambda x, w: snp.tanh(x @ w.T) @ w.T)
    text = f.lower(LEFT, RIGHT).compile().as_text()
    kernels = re.findall(r"^%\S+ \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    products = [kernel.count(" dot(") for kernel in kernels if " dot(" in kernel]
    assert sorted(products) in ([1], [1, 1])  # equal ones are one
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((8, SIZE)), rng.standard_normal((SIZE, SIZE)) / SIZE**0.5
    want = np.tanh(x @ w.T) @ w.T
    np.testing.assert_allclose(
        f(x.astype(np.float32), w.astype(np.float32)), want, rtol=1e-4, atol=1e-4
    )


# Values that several kernels need: which are stored, and that XLA then computes them once.


N = 64
X, Y, W = snp.ones((N, N)), snp.full((N, N), 2.0), snp.ones((N, 8))


def program_of(f, *args):
    program = materialize_shared(st.make_graph(f)(*args))
    check(program)
    return program


def barriers(f, *args):
    equations = program_of(f, *args).equations
    return sum(isinstance(e.primitive, OptimizationBarrier) for e in equations)


def test_what_two_kernels_read_is_stored():
    def f(x, y):
        s = x + y
        return s.sum(), s.T @ W, s @ W

    assert barriers(f, X, Y) == 1


def test_what_one_kernel_reads_is_not():
    assert barriers(lambda x, y: (x + y) @ W, X, Y) == 0

    def gelu(x, y):
        s = x + y
        return (s * (1 + snp.tanh(s + 0.04 * s * s))) @ W

    assert barriers(gelu, X, Y) == 0


def test_what_is_cheap_to_read_again_is_not():
    def twice(s):
        return s.sum(), s @ W

    assert barriers(lambda x: twice(2 * x + 1), X) == 0  # one array
    assert barriers(lambda x, v: twice(x * v + v), X, snp.ones(N)) == 0  # and a small one
    assert barriers(lambda u, v: twice(u[:, None] * v + u[:, None]), snp.ones(N), snp.ones(N)) == 0


@pytest.mark.parametrize(
    ("shape", "dtype", "count"),
    [
        ((4, 4), "float32", 0),
        ((11, 93), "float32", 0),
        ((32, 32), "float32", 1),
        ((7, 73), "float64", 0),
        ((16, 32), "float64", 1),
        ((15, 17), "complex128", 0),
        ((16, 16), "complex128", 1),
        ((65, 63), "int8", 0),
        ((64, 64), "int8", 1),
    ],
)
def test_small_values_are_not(shape, dtype, count):
    """They are from 4 KiB on."""

    def f(x, y):
        s = x + y
        return s.sum(), s.prod(0)

    with st.enable_x64():
        x = snp.ones(shape, dtype)
        assert barriers(f, x, x) == count


@pytest.mark.parametrize(("rows", "count"), [(4, 1), (5, 0)])
def test_quarters_of_a_value_take_time_to_read(rows, count):
    """One array of its size and as many rows as make another: smaller parts do not count."""

    def f(x, *parts):
        s = x
        for part in parts:
            s = s + part
        return s.sum(), s.max(0)

    assert barriers(f, snp.ones((rows, 1024)), *[snp.ones(1024)] * rows) == count


def test_long_functions_are_not_computed_again_by_the_compiler():
    def several(f):
        def g(x, y):
            s = f(x, y)
            return s.sum(), s.T @ W, s @ W

        return g

    assert barriers(several(snp.add), X, Y) == 1
    assert barriers(several(snp.power), X, Y) == 0


def test_results_are_stored_already():
    def f(x, y):
        s = x + y
        return s, s @ W, s.sum()

    assert barriers(f, X, Y) == 0


def test_inside_loops_and_calls():
    def step(c, x):
        s = c + x
        return s @ Y + s.sum(), s.max()

    found = program_of(lambda xs: st.lax.scan(step, X, xs), snp.ones((3, N, N)))
    (scan,) = [e.primitive for e in found.equations if e.primitive.holds_programs]
    assert any(isinstance(e.primitive, OptimizationBarrier) for e in scan.body.equations)


def test_behind_calls_which_xla_inlines():
    @st.jit
    def add(x, y):
        return x + y

    def several(x, y):
        s = add(x, y)
        return s.sum(0), s @ W

    assert barriers(several, X, Y) == 1
    assert barriers(lambda x, y: add(x, y) @ W, X, Y) == 0


def test_applied_twice_it_changes_nothing_more():
    def f(x, y):
        s = x + y
        return s.sum(), s @ W

    once = program_of(f, X, Y)
    assert materialize_shared(once) is once
    plain = st.make_graph(lambda x: (snp.tanh(x).sum(), snp.tanh(x) @ W))(X)
    assert materialize_shared(plain) is plain


def test_only_with_simplify():
    def f(x, y):
        s = x + y
        return s.sum(), s @ W

    assert "optimization_barrier" in st.jit(f).lower(X, Y).as_text()
    with st.config(simplify=False):
        assert "optimization_barrier" not in st.jit(f).lower(X, Y).as_text()


def residual(weights, x):
    """A network with residual connections, whose cotangents are sums over all later layers."""
    for w in weights:
        y = x - x.mean(-1, keepdims=True)
        x = x + snp.tanh(y / snp.sqrt((y * y).mean(-1, keepdims=True) + 1e-5) @ w)
    return (x * x).sum()


def largest_kernel(layers):
    """The operations of the largest kernel in the gradient of a network of so many layers."""
    weights = [snp.full((N, N), 0.01 * (i + 1)) for i in range(layers)]
    with st.config(roll_loops=False, disk_cache=False):
        text = st.jit(st.grad(residual)).lower(weights, snp.ones((2, N, N))).compile().as_text()
    kernels = re.findall(r"^%fused_computation.*?^}", text, re.MULTILINE | re.DOTALL)
    return max(len(re.findall(r" = ", kernel)) for kernel in kernels)


def test_kernels_do_not_grow_with_the_depth_of_a_residual_network():
    assert largest_kernel(8) == largest_kernel(4)
    with st.config(simplify=False, kernels=False):
        assert largest_kernel(8) > 1.5 * largest_kernel(4)  # else the pass is no longer needed


def test_nan_and_infinities_pass():
    x = snp.zeros((N, N)).at[0, 0].set(np.nan).at[1, 1].set(np.inf)

    def f(x, y):
        s = x + y
        return s.sum(0), snp.maximum(s, 0) @ Y

    for simplify in (True, False):
        with st.config(simplify=simplify):
            sums, products = st.jit(f)(x, Y)
        assert np.isnan(sums[0]) and np.isposinf(sums[1])
        assert np.isnan(products[0]).all() and np.isposinf(products[1]).all()


@pytest.mark.parametrize("vmapped", [False, True])
def test_derivatives_and_members(vmapped):
    f = st.grad(lambda w, x: residual([w, w + 1], x))
    w, x = 0.1 * snp.ones((3, N, N)), snp.ones((3, 2, N, N))
    call = st.vmap(f) if vmapped else lambda w, x: f(w[0], x[0])
    expected = call(w, x)
    np.testing.assert_allclose(st.jit(call)(w, x), expected, rtol=2e-4, atol=1e-4)


STEPS = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: snp.where(a > b, a, b),
    lambda a, b: snp.tanh(a) - b,
    lambda a, b: a + b.sum(),
    lambda a, b: a @ b / N,
    lambda a, b: a.T + b,
    lambda a, b: a + b.mean(1, keepdims=True),
]


PLACE = some.integers(0, 20)


@given(some.lists(some.tuples(some.sampled_from(STEPS), PLACE, PLACE), max_size=12))
def test_random_programs_keep_their_values(steps):
    def f(x, y):
        values = [x, y]
        for step, i, j in steps:
            values.append(step(values[i % len(values)], values[j % len(values)]))
        return values[-1], sum(v.sum() for v in values)

    x = snp.linspace(-1, 1, N * N).reshape(N, N)
    y = snp.cos(x)
    program = st.make_graph(f)(x, y)
    changed = materialize_shared(program)
    check(changed)
    for got, want in zip(evaluate(changed, [x, y]), evaluate(program, [x, y]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_is_compared_is_stored_but_not_the_comparison():
    def f(x, y):
        below = x + y <= 0
        return snp.where(below, 0, y).sum(), snp.where(below, x, 0).max(0)

    text = str(program_of(f, X, Y))
    assert re.findall(r":(\S+) = optimization_barrier", text) == [f"f32[{N},{N}]"]


# What is read elsewhere than a barrier's copy of it


def _columns(x, w):
    y = x @ w
    return lax.optimization_barrier(y) - y[:1], y.T @ y


PARTS = {
    "rows": lambda y: y[:1] * 2,
    "after arithmetic": lambda y: (y * y + 1)[3:4],
    "columns": lambda y: y[:, 5:6],
    "reversed": lambda y: y[::-1],
    "turned": lambda y: y.T.reshape(y.shape),
    "sums": lambda y: y.sum(0, keepdims=True),
    "gathered": lambda y: y[np.array([7])],
    "windows": lambda y: lax.reduce_window(y, -np.inf, lax.max, (3, 1), (1, 1), "SAME"),
    "running": lambda y: snp.cumsum(y, 0),
}
"""What of an array stands elsewhere than where it is used."""


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("part", PARTS)
def test_no_kernel_writes_over_what_it_reads_elsewhere(part, copies):
    def program(x, w):
        y = x @ w
        taken, last = PARTS[part](y), y
        other = y.T @ y
        for _ in range(copies):
            last = lax.optimization_barrier(last)
        return (last * 1.5 - taken) * other[0, 0]

    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 64)).astype(np.float32)
    w = rng.standard_normal((64, 256)).astype(np.float32)
    with st.config(interpret_small=False, disk_cache=False):
        got = st.jit(program)(x, w)
    want = program(snp.asarray(x), snp.asarray(w))  # each operation alone
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_what_is_taken_beside_a_copy_is_stored_once():
    program = store_beside_copies(make_graph(_columns)(*[np.ones((4, 4), np.float32)] * 2))
    check(program)
    assert names(program).count("optimization_barrier") == 2
    taken = next(e for e in program.equations if e.primitive.name == "slice")
    (reader,) = [e for e in program.equations if taken.outputs[0] in e.inputs]
    assert reader.primitive.name == "optimization_barrier"
    assert store_beside_copies(program) is program


@pytest.mark.parametrize(
    "unharmed",
    [
        lambda y: lax.optimization_barrier(y) - y,  # in the same place
        lambda y: lax.optimization_barrier(y)[:1] - y,  # the copy is not written over
        lambda y: (lax.optimization_barrier(y), y[:1]),  # by different kernels
        lambda y: lax.optimization_barrier(y) @ y[:, :4],
    ],
)
def test_nothing_is_stored_where_no_kernel_reads_both(unharmed):
    graph = make_graph(unharmed)(np.ones((4, 4), np.float32))
    assert store_beside_copies(graph) is graph


def test_also_inside_of_loops():
    def body(y, _):
        z = y @ y
        return lax.optimization_barrier(z) - z[:1], None

    graph = make_graph(lambda y: lax.scan(body, y, None, length=3)[0])(np.ones((4, 4), np.float32))
    (loop,) = store_beside_copies(graph).equations
    assert names(loop.primitive.programs()[0]).count("optimization_barrier") == 2


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32, bool])
@pytest.mark.parametrize(
    ("size", "changed"),
    [(1, "select"), ((1 << 16) - 1, "select"), (1 << 16, "after")],
)
def test_large_outputs_wait_for_what_is_counted_without_a_copy(size, changed, dtype):
    x = snp.asarray(np.arange(size) % 2, dtype)
    program = make_graph(pass_module._after_counting)(x)
    assert [e.primitive.name for e in program.equations][-1] == changed
    np.testing.assert_array_equal(evaluate(program, [x])[0], x)
