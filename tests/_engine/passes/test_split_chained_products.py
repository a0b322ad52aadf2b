"""Products that YNNPACK would put into one kernel, and compute again and again."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.program import check
from stretto._engine.ops.barrier import OptimizationBarrier
from stretto._engine.passes.split_chained_products import split_chained_products

N = 512
X, W = snp.ones((8, N)), snp.ones((N, N))


def barriers(f, *args):
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
    assert barriers(f, X, W) == count


def test_small_matrices_are_one_block():
    assert barriers(lambda x, w: x @ w @ w, snp.ones((8, 64)), snp.ones((64, 64))) == 0


def test_bodies_of_loops_are_changed():
    def turns(x, w):
        return st.lax.fori_loop(0, 3, lambda _, x: x @ w @ w, x)

    program = st.make_graph(turns)(X, W)
    assert "optimization_barrier" not in str(program)
    assert "optimization_barrier" in str(split_chained_products(program))


def test_no_kernel_has_both_products():
    """With the products at YNNPACK, as transposed weights have them."""
    f = st.jit(lambda x, w: snp.tanh(x @ w.T) @ w.T)
    text = f.lower(X, W).compile().as_text()
    kernels = re.findall(r"^%\S+ \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    products = [kernel.count(" dot(") for kernel in kernels if " dot(" in kernel]
    assert sorted(products) in ([1], [1, 1])  # equal ones are one
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((8, N)), rng.standard_normal((N, N)) / N**0.5
    want = np.tanh(x @ w.T) @ w.T
    np.testing.assert_allclose(
        f(x.astype(np.float32), w.astype(np.float32)), want, rtol=1e-4, atol=1e-4
    )
