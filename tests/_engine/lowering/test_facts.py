"""What is noted about programs while they are written."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.types import array_type

SQUARE = snp.ones((4, 4))


def facts_of(f, *args):
    return st.jit(f).lower(*args)._entry.text().facts


def test_results_are_counted_by_type():
    facts = facts_of(lambda x: snp.sin(x) + snp.cos(x), SQUARE)
    assert facts.results == {array_type((4, 4), np.dtype(np.float32)): 3}
    assert facts.name == "function"


def test_products_say_how_their_operands_lie():
    (product,) = facts_of(lambda x, y: x @ y.T, SQUARE, SQUARE).products
    assert (product.summed, product.is_batch) == (((1,), (0,)), False)
    assert (product.swapped, product.repeats, product.in_loop) == ((False, True), False, False)
    one = lambda x, y: snp.matmul(snp.broadcast_to(x, (3, 4, 4)), y)
    (product,) = facts_of(one, SQUARE, snp.ones((3, 4, 4))).products
    assert product.is_batch and product.repeats


def test_loops_and_what_is_in_them():
    outside = facts_of(lambda x: lax.optimization_barrier(x) @ x, SQUARE)
    assert outside.has_barriers and not outside.has_barriers_in_loops and not outside.has_loops
    f = lambda x: lax.fori_loop(0, 5, lambda _, x: lax.optimization_barrier(x) @ x, x)
    inside = facts_of(f, SQUARE)
    assert inside.has_loops and inside.has_barriers_in_loops and inside.products[0].in_loop
    called = st.jit(lambda x: snp.tanh(x @ x))
    facts = facts_of(lambda x: called(called(x)), SQUARE)  # a loop may call it
    assert [p.in_loop for p in facts.products] == [True]


def test_calls():
    kept_apart = lambda x: lax.fori_loop(
        0, 5, lambda _, x: x + st.random.uniform(st.random.key(0), (300,)), x
    )
    assert facts_of(kept_apart, snp.ones(300)).largest_call_in_loops >= 300
    assert any("potrf" in name for name in facts_of(snp.linalg.cholesky, SQUARE).targets)


def test_reductions_whose_region_is_not_taken_leave_no_facts():
    """A user's computation with a loop is written, found to be none for a region, and dropped."""
    combine = lambda x, y: lax.fori_loop(0, 2, lambda _, z: z + y, x)
    facts = facts_of(lambda x: lax.reduce(x, np.float32(0), combine, (0,)), snp.ones(8))
    assert not facts.has_reductions
    plain = facts_of(
        lambda x: lax.reduce(x, np.float32(0), lambda x, y: x * y + y, (0,)), snp.ones(8)
    )
    assert plain.has_reductions and not plain.has_loops
