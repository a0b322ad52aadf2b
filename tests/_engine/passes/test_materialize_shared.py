"""Values that several kernels need: which are stored, and that XLA then computes them once."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.ops.barrier import OptimizationBarrier
from stretto._engine.passes.materialize_shared import materialize_shared

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


def test_small_values_are_not():
    def f(x, y):
        s = x + y
        return s.sum(), s.max(0)

    small = snp.ones((4, 4))
    assert barriers(f, small, small) == 0


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
    with st.config(simplify=False):
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
