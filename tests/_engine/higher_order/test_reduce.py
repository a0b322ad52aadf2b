"""Reductions by any operation: known ones found out, the laws of others, order, messages."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import special
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.higher_order.reduce import Reduce
from stretto.laws import b1, bf16, c64, f32, f64, i32, law, u32
from tests.any_size import holds

lax = st.lax
RUNS = pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])


def affine(x, y):
    """(a, b) then (c, d): a c z + b c + d. Associative, and not commutative."""
    (a, b), (c, d) = x, y
    return a * c, b * c + d


def composed(a, b):
    return lax.reduce((a, b), (1.0, 0.0), affine, (1,))


def greatest_place(x, y):
    """The greatest with its index: the first of equals."""
    (u, i), (v, j) = x, y
    first = (u > v) | ((u == v) & (i < j))
    return snp.where(first, u, v), snp.where(first, i, j)


def argmax(x):
    index = snp.broadcast_to(snp.arange(x.shape[1], dtype=snp.int32), x.shape)
    return lax.reduce((x, index), (-snp.inf, np.int32(2**31 - 1)), greatest_place, (1,))


def circle(u, v):
    """(1 + u)(1 + v) - 1, to which 0 is neutral."""
    return u + v + u * v


def growth(x, *axes):
    return lax.reduce(x, snp.zeros((), x.dtype), circle, axes)


LAWS = [
    law(Reduce, composed, f32(2, 5), f32(2, 5)),
    law(Reduce, composed, f64(2, 4), f64(2, 4)),
    law(Reduce, composed, c64(2, 3), c64(2, 3)),
    law(Reduce, composed, bf16(2, 3), bf16(2, 3), factor=4),  # rounded after each of three steps
    law(Reduce, argmax, f64(2, 5)),
    law(Reduce, lambda x: growth(x, 0, 2), f64(2, 2, 3)),
    law(Reduce, lambda x: growth(x, 1), f32(2, 1)),
    law(Reduce, lambda x: growth(x, 0), f32(0, 2)),
    law(Reduce, lambda x: growth(x, 1), f32(0, 2)),
    law(Reduce, lambda x, c: lax.reduce(x, c, snp.logaddexp, (0,)), f64(3), f64()),
    law(Reduce, lambda x: growth(x, 0), i32(3, 2)),
    law(Reduce, lambda x: growth(x, 1), u32(2, 1)),
    law(Reduce, lambda x: lax.reduce(x, True, lambda u, v: u == v, (0,)), b1(4)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


# What is known becomes the reduction that it is


KNOWN = {
    "reduce_sum": (lax.add, 0, [3, -1, 2]),
    "reduce_prod": (lambda x, y: y * x, 1, [3, -1, 2]),
    "reduce_max": (snp.maximum, -np.inf, [3.0, -1.0, 2.0]),
    "reduce_min": (lax.min, np.inf, [3.0, -1.0, 2.0]),
    "reduce_and": (lax.bitwise_and, -1, [7, 5, 13]),
    "reduce_or": (lambda x, y: x | y, 0, [7, 5, 13]),
    "reduce_xor": (lax.bitwise_xor, 0, [7, 5, 13]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_operations_are_found_out(name):
    computation, start, elements = KNOWN[name]
    x = snp.array(elements)
    fun = lambda x: lax.reduce(x, start, computation, (0,))
    (equation,) = st.make_graph(fun)(x).equations
    assert equation.primitive.name == name
    assert fun(x) == getattr(lax, name)(x, (0,))


@pytest.mark.parametrize(
    ("computation", "name"),
    [(lax.add, "reduce_or"), (lax.mul, "reduce_and"), (lax.max, "reduce_max")],
    ids=["add", "mul", "max"],
)
def test_of_truth(computation, name):
    x = snp.array([True, False, True])
    fun = lambda x: lax.reduce(x, computation is lax.mul, computation, (0,))
    assert st.make_graph(fun)(x).equations[0].primitive.name == name
    assert bool(fun(x)) is (computation is not lax.mul)


def test_what_only_looks_known_is_kept():
    fun = lambda x: lax.reduce(x, 0.0, lambda u, v: u + u, (0,))
    assert st.make_graph(fun)(snp.ones(3)).equations[0].primitive.name == "reduce"


@RUNS
def test_other_initial_values_are_joined_once(run):
    x = snp.array([[1.0, 2.0], [3.0, 4.0]])
    total = lambda x, c: lax.reduce(x, c, lax.add, (1,))
    np.testing.assert_array_equal(run(total)(x, 10.0), [13.0, 17.0])
    assert run(st.grad(lambda c: total(x, c).sum()))(5.0) == 2.0
    assert run(lambda x: lax.reduce(x, 7.0, lax.mul, (0,)))(x[:0]).tolist() == [7.0, 7.0]
    assert run(lambda x: lax.reduce(x, 1.0, lax.add, ()))(x).tolist() == [[2.0, 3.0], [4.0, 5.0]]


# Any other


@RUNS
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 20])
def test_neighbours_stay_in_order(run, n):
    rng = np.random.default_rng(n)
    a, b = rng.uniform(-1, 1, (2, 3, n)).astype(np.float32)
    want_a, want_b = np.ones(3, np.float32), np.zeros(3, np.float32)
    for k in range(n):
        want_a, want_b = want_a * a[:, k], want_b * a[:, k] + b[:, k]
    got_a, got_b = run(composed)(a, b)
    np.testing.assert_allclose(got_a, want_a, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got_b, want_b, rtol=1e-5, atol=1e-6)


@RUNS
def test_several_operands(run):
    x = snp.array([[1.0, 5.0, 5.0, 2.0], [7.0, np.inf, 0.0, np.inf]])
    value, index = run(argmax)(x)
    assert value.tolist() == [5.0, np.inf]
    assert index.tolist() == [1, 1]
    tree = run(lambda x: lax.reduce({"s": x, "p": x}, {"s": 0.0, "p": 1.0}, sum_and_product, (0,)))
    out = tree(snp.array([2.0, 3.0, 4.0]))
    assert {k: float(v) for k, v in out.items()} == {"s": 9.0, "p": 24.0}


def sum_and_product(x, y):
    return {"s": x["s"] + y["s"], "p": x["p"] * y["p"]}


@RUNS
def test_derivatives_to_second_order(run):
    """Of p - 1 with p the product of 1 + x, one factor of which is 0."""
    with st.config(enable_x64=True):
        x = snp.array([3.0, -1.0, 2.0])
        total = lambda x: growth(x, 0)
        first, second = [0, 12, 0], [[0, 3, 0], [3, 0, 4], [0, 4, 0]]
        np.testing.assert_allclose(run(st.grad(total))(x), first, atol=1e-12)
        np.testing.assert_allclose(run(st.hessian(total))(x), second, atol=1e-12)
        many = snp.stack([x, snp.zeros(3)])
        both = [second, 1 - np.eye(3)]
        np.testing.assert_allclose(run(st.vmap(st.hessian(total)))(many), both, atol=1e-12)
        # Each step adds p - 1 to all; J = (1 + ∇₂ᵀ)(1 + ∇₁ᵀ), and its first row.
        step = lambda c, _: (c + growth(c, 0), None)
        scanned = lambda x: lax.scan(step, x, None, length=2)[0][0]
        after = np.asarray(x) - 1
        gradient = [np.prod(np.delete(1 + after, i)) for i in range(3)]
        want = ((np.eye(3) + gradient) @ (np.eye(3) + first))[0]
        np.testing.assert_allclose(run(st.grad(scanned))(x), want, atol=1e-12)


@RUNS
def test_a_mapped_initial_value(run):
    x, c = snp.array([3.0, 4.0]), snp.array([0.0, 12.0])
    fun = lambda x, c: lax.reduce(x, c, snp.hypot, (0,))
    np.testing.assert_allclose(run(st.vmap(fun, (None, 0)))(x, c), [5.0, 13.0], rtol=1e-6)
    both = snp.stack([x, 2 * x], 1)
    np.testing.assert_allclose(
        run(st.vmap(fun, (1, 0)))(both, c), [5.0, math.hypot(10, 12)], rtol=1e-6
    )


@RUNS
def test_constants_of_the_computation(run):
    """A product of numbers modulo one held in an array."""
    moduli = snp.array([5, 7])
    fun = lambda x: lax.reduce(x, 1, lambda u, v: u * v % moduli[1], (0,))
    assert int(run(fun)(snp.array([3, 4, 6]))) == 72 % 7


# Messages


def test_errors_name_what_does_not_fit():
    x = snp.ones((2, 3))
    with pytest.raises(ValueError, match=r"operands must have one shape, got float32\[2,3\] and"):
        lax.reduce((x, x[0]), (0.0, 0.0), affine, (0,))
    with pytest.raises(ValueError, match="initial values must have the structure of the operands"):
        lax.reduce((x, x), 0.0, affine, (0,))
    with pytest.raises(ValueError, match=r"initial values must be scalars, got float32\[3\]"):
        lax.reduce(x, snp.zeros(3), lax.add, (0,))
    with pytest.raises(ValueError, match="expected at least one operand, got none"):
        lax.reduce((), (), affine, (0,))
    with pytest.raises(TypeError, match=r"must return elements like those it takes, float32\[\]"):
        lax.reduce(x, 0.0, lax.gt, (0,))
    with pytest.raises(TypeError, match="must return what it takes, 1 elements; got 2"):
        lax.reduce(x, 0.0, lambda u, v: (u, v), (0,))
    with pytest.raises(TypeError, match=r"an initial value of dtype int32, got float32\[\]"):
        lax.reduce(x.astype(int), np.float32(0.5), lax.add, (0,))
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        lax.reduce(x, 0.0, lax.add, (2,))
    with pytest.raises(TypeError, match="the computation uses a traced value from outside"):
        st.grad(lambda c: lax.reduce(x, 0.0, lambda u, v: u + c * v, (0, 1)))(1.0)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (31,), (3, 4)])
def test_elements_are_taken_in_order_compiled_or_not(shape):
    """For a function that is not associative: from the initial value on."""
    x = np.arange(1.0, 1.0 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    function = lambda x, y: x / 2 - y
    want = np.float32(7)
    for element in x.ravel():
        want = function(want, element)
    f = lambda x: st.lax.reduce(x, snp.float32(7), function, tuple(range(len(shape))))
    for found in (f(x), st.jit(f)(x), st.vmap(f)(x[None])[0], st.jvp(f, (x,), (x,))[0]):
        np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("shape", [(40,), (3, 50), (50, 3), (130,)])
def test_many_elements_are_taken_in_one_order_compiled_or_not(shape):
    x = (np.arange(np.prod(shape)) % 7).astype(np.float32).reshape(shape)
    f = lambda x: st.lax.reduce(x, snp.float32(7), lambda x, y: x / 2 - y, (0,))
    want = f(x)
    for found in (st.jit(f)(x), st.vmap(f)(x[None])[0], st.jit(st.vmap(f))(x[None])[0]):
        np.testing.assert_allclose(found, want, rtol=1e-6)


def in_rows(window, padding, combine, x):
    """The rows of a matrix combined, or windows of them."""
    if window is None:
        return lax.reduce(x, 0.0, combine, (1,))
    return lax.reduce_window(x, 0.0, combine, window, (1, 1), padding)


def barred(x, y):
    return lax.optimization_barrier(circle(x, y))


BARRED = {
    "plain": barred,
    "jit": st.jit(barred),
    "checkpoint": st.checkpoint(barred),
    "derivative": lambda x, y: st.grad(st.checkpoint(lambda z: barred(z, y) * z))(x) * 0 + x + y,
    "cond": lambda x, y: lax.cond(x > y, lambda: barred(x, y), lambda: barred(y, x)),
    "associative_scan": lambda x, y: barred(
        x, lax.associative_scan(barred, snp.stack([y, y * 0]))[-1]
    ),
}


@pytest.mark.parametrize("name", BARRED)
@pytest.mark.parametrize("windows", [False, True], ids=["reduce", "reduce_window"])
def test_barriers_between_scalars_do_not_reach_the_compiler(windows, name):
    """XLA ends the process if it finds one in the region of a reduction."""
    x = snp.linspace(0.1, 0.9, 12).reshape(3, 4)
    whole = partial(in_rows, (1, 4) if windows else None, "VALID")
    f = lambda x: whole(BARRED[name], x)
    want = lambda x: whole((lambda x, y: x + y) if name == "derivative" else circle, x)
    np.testing.assert_allclose(st.jit(f).lower(x).compile()(x), want(x), rtol=1e-5)
    np.testing.assert_allclose(st.jit(st.vmap(f))(x[None])[0], want(x), rtol=1e-5)
    slope = [st.jit(st.grad(lambda x, g=g: g(x).sum()))(x) for g in (f, want)]
    np.testing.assert_allclose(*slope, rtol=1e-5)


def by_while(x, y):
    step = lambda c: (c[0] + 1, circle(c[1], y))
    return lax.while_loop(lambda c: c[0] < 1, step, (0, x))[1]


def by_switch(x, y):
    branches = [lambda: circle(x, y), lambda: x, lambda: circle(y, x)]
    return lax.switch((x > y).astype(int) * 2, branches)


def by_callback(x, y):
    return st.pure_callback(np.positive, x, circle(x, y), vmap_method="expand_dims")


def by_inverse(x, y):
    """By the trace of the inverse: 1 / (1 + x) + 1 / (1 + y)."""
    inverse = snp.linalg.inv(snp.diag(snp.stack([1 + x, 1 + y])))
    return (2 + x + y) / inverse.trace() - 1


NOT_IN_A_KERNEL = {
    "loop": lambda x, y: lax.fori_loop(0, 2, lambda i, c: circle(c, y * i), x),
    "while": by_while,
    "switch": by_switch,
    "callback": by_callback,
    "library": by_inverse,
    "sort": lambda x, y: circle(*snp.sort(snp.stack([x, y]))),
    "running": lambda x, y: snp.cumprod(snp.stack([x + 1, y + 1] + [snp.ones(())] * 18))[-1] - 1,
    "whole power": lambda x, y: circle(x, y) * (snp.int32(1) ** (x > y).astype(snp.int32)),
    "series": lambda x, y: circle(x, y) + 0 * special.gammainc(snp.exp(x), 1.0),
}


@pytest.mark.parametrize("name", NOT_IN_A_KERNEL)
@pytest.mark.parametrize("windows", [False, True], ids=["reduce", "reduce_window"])
def test_what_has_no_place_in_a_kernel_is_computed_otherwise(windows, name):
    """XLA ends the process if a reduction's region has a loop, say, or a call."""
    x = snp.linspace(0.1, 0.9, 24).reshape(4, 6)
    whole = partial(in_rows, (1, 3) if windows else None, "SAME")
    f, want = lambda x: whole(NOT_IN_A_KERNEL[name], x), whole(circle, x)
    np.testing.assert_allclose(st.jit(f).lower(x).compile()(x), want, rtol=1e-5)
    np.testing.assert_allclose(st.jit(st.vmap(f)).lower(x[None]).compile()(x[None])[0], want, 1e-5)


def test_a_callback_that_was_given_up_leaves_the_others_right():
    """The numbers of calls go on, though the region with the first is not written."""

    def f(x):
        before = st.pure_callback(lambda x: np.asarray(x) + 1, x, x)
        after = lax.reduce(before, 0.0, by_callback, (0,))
        return st.pure_callback(lambda x: np.asarray(x) * 3, after, after)

    np.testing.assert_allclose(st.jit(f)(snp.zeros(20)), 3 * (2.0**20 - 1))


def test_barriers_beside_a_reduction_stay():
    """Also in a function that both call."""
    both = st.jit(barred)
    f = st.jit(lambda x: both(lax.reduce(x, 0.0, both, (0,)), 1.0))
    text = f.lower(snp.ones(40)).as_text()
    assert text.count('"stablehlo.optimization_barrier"') == 1
    np.testing.assert_allclose(f.lower(snp.ones(3)).compile()(snp.ones(3)), 15.0)


def joined(a, b):  # (1 + a) (1 + b) - 1
    return a * b + a + b


def test_axes_of_any_size():
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for axes in ((0,), (1,), (0, 1)):
        holds(lambda x, axes=axes: lax.reduce(x, 0.0, joined, axes), [x], {(0, 0): 0}, tolerance=10)
    pair = lambda a, b: (a[0] + b[0], snp.maximum(a[1], b[1]) + 0 * a[0])
    both = lambda x, y: lax.reduce((x, y), (0.0, -9.0), pair, (0,))
    holds(both, [x, -x], {(0, 0): 0, (1, 0): 0}, tolerance=10)


@pytest.mark.parametrize("shape", [(3,), (32,), (4, 5)])
def test_derivatives_of_functions_that_are_not_associative(shape):
    x = np.linspace(0.5, 1.5, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    axes = tuple(range(len(shape)))
    f = lambda x: lax.reduce(x, snp.float32(0), lambda x, y: y - x / 2, axes)
    want = (-0.5) ** np.arange(x.size)[::-1].reshape(shape)
    for got in (st.grad(f)(x), st.jit(st.grad(f))(x), st.jacfwd(f)(x)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-8)


def test_the_derivative_of_more_elements_than_a_block_is_refused_for_them():
    x = snp.ones(33)
    with pytest.raises(MissingRuleError, match="not associative, so its result over 33 elements"):
        st.grad(lambda x: lax.reduce(x, snp.float32(0), lambda x, y: y - x / 2, (0,)))(x)
    slope = st.grad(lambda x: lax.reduce(x, snp.float32(0), circle, (0,)))(0.01 * x)
    np.testing.assert_allclose(slope, np.full(33, 1.01**32), rtol=1e-5)  # (1 + x)³³ - 1


def test_an_operation_refuses_axes_that_are_not_there():
    f = lambda x: lax.reduce(x, 0.0, lambda a, b: a - b, (0,))
    (equation,) = st.make_graph(f)(snp.ones(4)).equations
    operation = dataclasses.replace(equation.primitive, axes=(1,))
    with pytest.raises(ValueError, match=r"reduce: axes \(1,\) are not distinct axes of float32"):
        operation.infer(*(a.type for a in equation.inputs))


@pytest.mark.parametrize(
    ("shape", "compiled"), [((16,), False), ((17,), True), ((4, 4095), False), ((4, 4096), True)]
)
def test_reductions_of_many_elements_are_compiled(shape, compiled):
    f = lambda x: lax.reduce(x, np.float32(0), lambda a, b: a * b + a + b, (0,))
    (equation,) = st.make_graph(f)(snp.zeros(shape)).equations
    assert equation.primitive.compiled([a.type for a in equation.inputs]) is compiled


@pytest.mark.parametrize(
    ("shape", "loops", "compiled"),
    [
        ((16, 3), 0, False),
        ((17, 3), 1, True),
        ((16, 1023), 0, False),
        ((16, 1024), 0, True),
        ((0, 3), 0, False),
        ((3, 0), 0, False),
    ],
)
def test_sixteen_elements_are_combined_one_by_one_and_more_in_a_loop(shape, loops, compiled):
    combine = lambda x, y: x * y + 1.0
    x, start = snp.ones(shape), snp.float32(0)
    (primitive,) = [
        e.primitive
        for e in st.make_graph(lambda x: st.lax.reduce(x, start, combine, (0,)))(x).equations
        if e.primitive.name == "reduce"
    ]
    program = st.make_graph(primitive.one_by_one)(x, start)
    assert [e.primitive.name for e in program.equations].count("scan") == loops
    assert primitive.compiled((x.type,)) is compiled
