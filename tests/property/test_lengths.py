"""Random programs of any length: padded, mapped over ragged arrays, and their derivatives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.recorder import record
from stretto._engine.core.size_guards import known_sizes, varying_sizes
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.fixed_sizes import padded_program, variables_of
from tests.any_size import garbage
from tests.property.lengths import OPERATIONS, Lengths
from tests.property.oracles import assert_same

F64 = np.dtype(np.float64)
N = size_variable("n")


def drawn(rng, n):
    return snp.asarray(rng.uniform(-1, 1, (n, 3)))


def with_slopes(program, seed):
    """The program, and its derivatives by rows and weights."""

    def loss(rows, weights):
        outs = program(rows, weights)
        return sum(((k + 1) * snp.sin(3 * y)).sum() for k, y in enumerate(outs)), outs

    def both(rows, weights):
        (_, outs), slopes = st.value_and_grad(loss, (0, 1), has_aux=True)(rows, weights)
        return [*outs, *slopes]

    return both


def padded(f, rows, weights, bucket):
    """The valid parts of what it gives for a bucket, evaluated with garbage as padding."""
    types = [array_type((N, 3), F64), weights.type]
    with varying_sizes(), known_sizes([{next(N.variables()): rows.shape[0]}]):  # as jit does
        program, _, captured = record(lambda *xs: (f(*xs), None), types)
    variables = variables_of(program)
    n = rows.shape[0]
    fixed = padded_program(program, variables, dict.fromkeys(variables, bucket))
    size = snp.asarray(n, np.int32)
    got = evaluate(fixed, [size, snp.asarray(garbage(rows, (bucket, 3))), weights, *captured])
    (variable,) = variables
    shapes = [[d if isinstance(d, int) else d.known({variable: n}) for d in t.shape]
              for t in program.out_types]  # fmt: skip
    return [np.asarray(x)[tuple(map(slice, s))] for x, s in zip(got, shapes)]


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_padded_programs_are_those_without_padding(first):
    with st.enable_x64():
        for seed in range(first, first + 10):
            rng = np.random.default_rng(seed)
            f = with_slopes(Lengths(seed), seed)
            n = int(rng.integers(1, 10))
            rows, weights = drawn(rng, n), snp.asarray(rng.uniform(-1, 1, 3))
            got = padded(f, rows, weights, n + int(rng.integers(0, 6)))
            assert_same(got, f(rows, weights), f"{Lengths(seed)}, {n} rows")


@pytest.mark.parametrize("seed", range(100, 106))
def test_ragged_arrays_are_mapped_as_the_loop(seed):
    with st.enable_x64():
        rng = np.random.default_rng(seed)
        program = Lengths(seed)
        rows = [drawn(rng, int(n)) for n in rng.integers(1, 10, 3)]
        weights = snp.asarray(rng.uniform(-1, 1, 3))

        def total(x, weights):
            return sum(((k + 1) * snp.sin(3 * y)).sum() for k, y in enumerate(program(x, weights)))

        ragged = st.ragged(rows)
        slopes = st.grad(lambda r, w: st.vmap(total, (0, None))(r, w).sum(), (0, 1))(
            ragged, weights
        )
        each = [st.grad(total, (0, 1))(x, weights) for x in rows]
        got = [*slopes[0].like(ragged).to_list(), slopes[1]]
        wanted = [*[by_rows for by_rows, _ in each], sum(by_weights for _, by_weights in each)]
        assert_same([*st.vmap(total, (0, None))(ragged, weights), *got],
                    [*[total(x, weights) for x in rows], *wanted], str(program))  # fmt: skip


def test_programs_use_every_operation():
    names = {name for seed in range(200) for name, *_ in Lengths(seed).steps}
    assert names == {*OPERATIONS, "each row"}
