"""Products that are added up over the axes that they share."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.passes.simplify import factor_dot_sums

RNG = np.random.default_rng(0)
A, B = (snp.asarray(RNG.normal(size=s), np.float32) for s in ((5, 3, 4), (5, 4, 2)))


def read_twice(c):
    return c.sum(0), c[0], c.sum(0)


def products(f, *args):
    """The axes that its products share, once they are contracted; with the same values."""
    graph = st.make_graph(f)(*args)
    program = factor_dot_sums(graph)
    check(program)
    for got, want in zip(evaluate(program, args), evaluate(graph, args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    found = [e.primitive for e in program.equations if e.primitive.name == "dot_general"]
    return [len(p.shared[0]) for p in found]


@pytest.mark.parametrize(
    ("f", "shared"),
    [
        (lambda a, b: (a @ b).sum(0), [0]),
        (lambda a, b: (a @ b).transpose(0, 2, 1).sum(0), [0]),
        (lambda a, b: (a @ b).transpose(2, 1, 0).sum(2), [0]),
        (lambda a, b: (snp.stack([a, a]) @ snp.stack([b, b])).sum(1), [1]),
        (lambda a, b: (snp.stack([a, a]) @ snp.stack([b, b])).sum((0, 1)), [0]),
        (lambda a, b: (a @ b).sum((0, 1)), [1]),
        (lambda a, b: (a @ b).sum(1), [1]),
        (lambda a, b: a @ b, [1]),
        (lambda a, b: read_twice(a @ b), [1]),
        (lambda a, b: (a @ b).transpose(0, 2, 1).transpose(0, 2, 1).sum(0), [1]),
    ],
)
def test_sums_over_shared_axes(f, shared):
    assert products(f, A, B) == shared


def test_integers_stay():
    ints = [snp.asarray(x, int) for x in (A, B)]
    assert products(lambda a, b: (a @ b).sum(0), *ints) == [1]


def test_bodies_of_loops_are_changed():
    def turns(a, b):
        return lax.fori_loop(0, 3, lambda _, c: c + (a @ b).sum(0), snp.zeros((3, 2)))

    text = str(factor_dot_sums(st.make_graph(turns)(A, B)))
    assert "shared=((), ())" in text and "shared=((0,)" not in text


def test_precision_and_dtype_are_kept():
    def f(a, b):
        return lax.dot_general(
            a,
            b,
            (((2,), (1,)), ((0,), (0,))),
            precision="highest",
            preferred_element_type=np.float64,
        ).sum(0)

    with st.enable_x64():
        program = factor_dot_sums(st.make_graph(f)(A, B))
    (product,) = [e.primitive for e in program.equations if e.primitive.name == "dot_general"]
    assert product.shared == ((), ()) and product.preferred == np.float64
    assert product.precision == "HIGHEST"


def test_gradients_of_ragged_examples_are_not_written_one_by_one():
    def loss(w, rows):
        return (snp.tanh(rows.mean(0) @ w.T) ** 2).sum()

    w = snp.asarray(RNG.normal(size=(300, 400)), np.float32)
    parts = [snp.asarray(RNG.normal(size=(n, 400)), np.float32) for n in [1, 3, 2] * 20]
    total = st.jit(st.grad(lambda w, r: st.vmap(loss, (None, 0))(w, r).mean()))
    ragged = st.ragged(parts)
    want = sum(st.grad(loss)(w, rows) for rows in parts) / 60
    np.testing.assert_allclose(total(w, ragged), want, rtol=1e-4, atol=1e-5)
    memory = total.lower(w, ragged).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 60 * w.nbytes / 8
