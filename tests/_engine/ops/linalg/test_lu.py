"""The LU factorization: the laws, SciPy, permutations, and systems solved with it."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.ops.linalg.lu import Lu, LuSolve, PivotsToPermutation, solve
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax.linalg import lu, lu_pivots_to_permutation
from tests.any_size import holds


def steep(x):
    return x + 3 * snp.eye(*x.shape[-2:], dtype=x.dtype)


LAWS = [
    *(law(Lu, lambda x: lu(steep(x)), kind(3, 3)) for kind in (f32, f64, c64, c128)),
    law(Lu, lambda x: lu(steep(x)), f32(2, 2, 4)),
    law(Lu, lambda x: lu(steep(x)), c64(4, 2)),
    law(PivotsToPermutation, lambda p: lu_pivots_to_permutation(p, 5),
        np.array([3, 1, 4], np.int32)),
    law(PivotsToPermutation, lambda p: lu_pivots_to_permutation(p, 3),
        np.array([[1, 1, 2], [2, 2, 2]], np.int32)),
    *(law(LuSolve, lambda a, b: solve(steep(a), b), kind(3, 3), kind(3, 2))
      for kind in (f32, f64, c64, c128)),
    law(LuSolve, lambda a, b: solve(steep(a), b, "T"), f32(2, 3, 3), f32(3, 2)),
    law(LuSolve, lambda a, b: solve(steep(a), b, "C"), c64(3, 3), c64(2, 3, 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_equals_scipy_and_gives_the_rows_permuted(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    k = min(shape)
    for f in (lu, st.jit(lu)):
        both, pivots, order = map(np.asarray, f(snp.array(x)))
        lower = np.tril(both[:, :k], -1) + np.eye(shape[0], k, dtype=np.float32)
        np.testing.assert_allclose(lower @ np.triu(both[:k]), x[order], atol=1e-6)
        assert pivots.dtype == order.dtype == np.int32
        if shape[0] == shape[1]:
            want, want_pivots = scipy.linalg.lu_factor(x)
            np.testing.assert_allclose(both, want, rtol=1e-6)
            np.testing.assert_array_equal(pivots, want_pivots)


@pytest.mark.parametrize("pivots, size", [([2, 2, 2], 3), ([3, 3], 4), ([], 2)])
def test_permutations_are_the_exchanges_in_turn(pivots, size):
    want = list(range(size))
    for i, j in enumerate(pivots):
        want[i], want[j] = want[j], want[i]
    p = snp.array(np.array(pivots, np.int32))
    np.testing.assert_array_equal(lu_pivots_to_permutation(p, size), want)
    np.testing.assert_array_equal(st.jit(lambda p: lu_pivots_to_permutation(p, size))(p), want)
    with pytest.raises(ValueError, match="expected int32 pivots of at most 1 rows"):
        lu_pivots_to_permutation(snp.array([0, 1]), 1)


def test_a_value_and_its_derivatives_share_one_factorization():
    a, b = snp.eye(3) * 2, snp.ones((3, 1))
    graph = str(st.make_graph(st.grad(lambda a, b: snp.sum(solve(a, b)), (0, 1)))(a, b))
    assert graph.count("= lu ") == 1
    assert graph.count("= lu_solve ") == 2


def test_one_matrix_for_all_examples_is_solved_once():
    a, b = snp.eye(3) * 2, snp.ones((7, 3, 2))
    graph = str(st.make_graph(st.vmap(lambda b: solve(a, b)))(b))
    assert "f32[3,14] = lu_solve" in graph


def test_a_singular_matrix_has_factors_and_no_solution():
    x = snp.array([[1.0, 2.0], [2.0, 4.0]])
    for f in (lambda m: m, st.jit):
        both, _, _ = f(lu)(x)
        assert float(both[1, 1]) == 0
        assert not np.isfinite(np.asarray(f(solve)(x, snp.ones((2, 1))))).all()


@pytest.mark.parametrize("batch", [(), (3,), (5, 10), (0,)], ids=str)
def test_permutations_of_few_and_of_many(batch):
    random = np.random.default_rng(0)
    pivots = np.stack([random.integers(i, 6, batch) for i in range(4)], -1).astype(np.int32)
    got = PivotsToPermutation(6).reference(pivots)
    assert got.shape == (*batch, 6)
    for place in np.ndindex(*batch):
        order = list(range(6))
        for i, j in enumerate(pivots[place]):
            order[i], order[j] = order[j], order[i]
        assert got[place].tolist() == order


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("rounded", [False, True])
def test_pivots_of_zero_have_finite_derivatives_whatever_rounding_leaves(shape, rounded):
    rng = np.random.default_rng(0)
    u, v = (rng.normal(size=n) if rounded else np.arange(1.0, n + 1) for n in shape)
    u[0] = 9  # no row changes its place
    x = np.outer(u, v).astype(np.float32)
    factors = lambda x: lu(x)[0]
    for f in (factors, st.jit(factors)):
        # Twice the matrix has twice the u, and the same l.
        both, change = map(np.asarray, st.jvp(f, (x,), (x,)))
        np.testing.assert_allclose(change, np.triu(both), atol=1e-5)
        # A change of the last row is one of the first column of l.
        last = np.zeros_like(x)
        last[-1] = v
        want = np.zeros_like(x)
        want[-1, 0] = 1 / u[0]
        np.testing.assert_allclose(st.jvp(f, (x,), (last,))[1], want, atol=1e-5)
        assert np.isfinite(st.jvp(f, (x,), (np.ones_like(x),))[1]).all()


def test_any_number_of_matrices():
    pivots = np.array([[1, 2], [0, 1]], np.int32)
    holds(
        lambda p: st.lax.linalg.lu_pivots_to_permutation(p, 3), [pivots], {(0, 0): 0}, ("values",)
    )
    of_one_row = np.zeros((2, 1), np.int32)
    holds(
        lambda p: st.lax.linalg.lu_pivots_to_permutation(p, 1),
        [of_one_row], {(0, 0): 0}, ("values",),
    )  # fmt: skip


def typed(*shape, dtype="float32"):
    return array_type(shape, np.dtype(dtype))


ORDER = typed(3, dtype="int32")


@pytest.mark.parametrize(
    ("op", "types", "message"),
    [
        (PivotsToPermutation(3), (typed(dtype="int32"),), "expected int32 pivots of at most 3"),
        (PivotsToPermutation(3), (typed(2),), "expected int32 pivots of at most 3"),
        (PivotsToPermutation(3), (typed(2, dtype="int64"),), "expected int32 pivots of at most 3"),
        (PivotsToPermutation(3), (typed(4, dtype="int32"),), "expected int32 pivots of at most 3"),
        (LuSolve("N"), (typed(3, 3), typed(3, 1, dtype="float64"), typed(3, 3), ORDER), "solve: a"),
        (LuSolve("N"), (typed(3, 4), typed(3, 1), typed(3, 4), ORDER), "solve: expected square"),
        (LuSolve("N"), (typed(3, 3), typed(4, 1), typed(3, 3), ORDER), "solve: a and b must have"),
        (LuSolve("N"), (typed(3, 3), typed(2, 3, 1), typed(3, 3), ORDER), "solve: a and b must"),
    ],
    ids=str,
)
def test_types_that_differ_in_one_respect_are_refused(op, types, message):
    with pytest.raises(ValueError, match=message):
        op.infer(*types)


def test_as_many_pivots_as_rows_or_fewer():
    for count in (0, 2, 3):
        assert PivotsToPermutation(3).infer(typed(2, count, dtype="int32")).shape == (2, 3)
