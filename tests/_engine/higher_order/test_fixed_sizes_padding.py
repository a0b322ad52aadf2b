"""Programs of sizes that vary, for a bucket: with anything as padding they give the same values."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn, random
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import is_size, size_variable
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.fixed_sizes import below_greatest, padded_program, variables_of

N, M = size_variable("n"), size_variable("m")
F32 = np.dtype(np.float32)
ROWS, LINES, BOTH = ((N, 4),), ((3, N),), ((N, 4), (M, 4))


def attend(q):
    scores = nn.functional.softmax(q @ q.T / 2, -1)
    return snp.einsum("ij,jk->ik", scores, q)


def pooled(x, size, stride):
    return lax.reduce_window(x, -snp.inf, lax.max, (size, 1), (stride, 1), ((1, 1), (0, 0)))


def gram(x):
    return x @ x.T / 4 + 2 * snp.eye(x.shape[0])


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / snp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def conv(x, stride=1, padding="SAME"):
    kernel = random.normal(random.key(0), (3, 4, 3))
    return lax.conv_general_dilated(x.T[None], kernel, (stride,), padding)


def random_bits(n):
    return lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (n,))[1]


def recurrent(x):
    return lax.scan(lambda c, row: (snp.tanh(c * 0.5 + row), c.sum()), snp.zeros(4), x)


PROGRAMS = {
    "element-wise": (lambda x: snp.sin(x) * 2 + x, ROWS),
    "sum of all": (lambda x: x.sum(), ROWS),
    "sum": (lambda x: x.sum(0), ROWS),
    "sum of lines": (lambda x: x.sum(1), LINES),
    "mean": (lambda x: x.mean(0), ROWS),
    "mean by the size": (lambda x: x.sum() / x.shape[0], ROWS),
    "variance": (lambda x: snp.var(x, 0), ROWS),
    "extrema": (lambda x: (x.max(0), x.min(1), snp.argmax(x, 0), snp.argmin(x, 0)), ROWS),
    "products": (lambda x: (x @ x.T, x.T @ x), ROWS),
    "any, all": (lambda x: ((x > 9).any(0), (x < 9).all(0)), ROWS),
    "prod": (lambda x: snp.prod(x, 0), ROWS),
    "attention": (attend, ROWS),
    "softmax": (lambda x: nn.functional.softmax(x, 0), ROWS),
    "logsumexp": (lambda x: st.scipy.special.logsumexp(x, 0), ROWS),
    "layer norm": (layer_norm, ROWS),
    "cumulative": (lambda x: (snp.cumsum(x, 0), lax.cummax(x, 0, reverse=True)), ROWS),
    "first, last": (lambda x: (x[0], x[-1]), ROWS),
    "slices": (lambda x: (x[1:], x[:-1], x[::2], x[::-1], x[-1:], x[1::2]), ROWS),
    "slices by size": (lambda x: (x[x.shape[0] // 2 :], x[: x.shape[0] // 2]), ROWS),
    "at most so many": (lambda x: (x[:3].sum(0), x[-3:].sum(0), x[2:].sum(0)), ROWS),
    "differences": (lambda x: snp.diff(x, axis=0), ROWS),
    "sort": (lambda x: (snp.sort(x, 0), snp.argsort(x, 0)), ROWS),
    "sort of NaN": (
        lambda x: (
            snp.sort(snp.where(x > 0, snp.nan, x), 0),
            snp.argsort(snp.where(x > 0, snp.nan, x), 0),
            snp.argsort(snp.where(x > 0, 2**31 - 1, 5), 0),
            snp.sort(x > 0, 0),
            snp.lexsort((x[:, 0], x[:, 1] > 0)),
        ),
        ROWS,
    ),
    "quantiles": (lambda x: (snp.median(x, 0), snp.quantile(x, 0.3, axis=0)), ROWS),
    "concatenate": (lambda x: snp.concatenate([x, x + 1, x[:1]]), ROWS),
    "concatenate two": (lambda x, y: snp.concatenate([x, y]).sum(0), BOTH),
    "outer of two": (lambda x, y: (x @ y.T, snp.argmax(x @ y.T, 1)), BOTH),
    "reshapes": (lambda x: (x.reshape(-1), x.reshape(x.shape[0], 2, 2), x.T.ravel()), ROWS),
    "reshape of lines": (lambda x: x.ravel(), LINES),
    "halves": (lambda x: x.reshape(-1, 2), ROWS),
    "made by size": (lambda x: (snp.zeros(x.shape[0]) + x[:, 0], snp.eye(x.shape[0]) @ x), ROWS),
    "arange": (lambda x: snp.arange(x.shape[0]) * x[:, 0], ROWS),
    "arange in steps": (lambda x: snp.arange(1, 2 * x.shape[0], 3).sum(), ROWS),
    "pad": (lambda x: snp.pad(x, ((1, 2), (0, 1)), constant_values=7), ROWS),
    "roll, flip": (lambda x: (snp.roll(x, 1, 0), snp.roll(x, -2, 0), snp.flip(x, 0)), ROWS),
    "take": (lambda x: snp.take(x, snp.argsort(x[:, 0]), 0), ROWS),
    "take out of bounds": (lambda x: x.at[snp.array([-1, 0, 40])].get(mode="fill"), ROWS),
    "take clipped": (lambda x: x.at[snp.array([-90, 0, 40])].get(mode="clip"), ROWS),
    "set": (lambda x: (x.at[0].set(1), x.at[-1].add(2), x.at[:-1].multiply(x[1:])), ROWS),
    "set out of bounds": (lambda x: x.at[snp.array([-1, 40])].set(5), ROWS),
    "set part": (lambda x: (x.at[1:].set(0.5 * x[:-1]), x.at[:-1].add(x[1:])), ROWS),
    "segments": (lambda x: st.lax.segment_sum(x, snp.arange(x.shape[0]) % 3, 3), ROWS),
    "count": (lambda x: snp.zeros(3).at[snp.arange(x.shape[0]) % 3].add(x[:, 0]), ROWS),
    "scan": (recurrent, ROWS),
    "scan backwards": (lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x, reverse=True), ROWS),
    "map": (lambda x: lax.map(lambda row: row.sum(), x), ROWS),
    "fori_loop": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], x[0]), ROWS),
    "while_loop": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), ROWS),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x), ROWS),
    "vmap over it": (st.vmap(lambda row: row / row.sum()), ROWS),
    "vmap beside it": (lambda x: st.vmap(snp.sort)(x.T), ROWS),
    "jit inside": (lambda x: st.jit(lambda x: x.sum(0))(x) + 1, ROWS),
    "checkpoint": (st.grad(lambda x: st.checkpoint(attend)(x).sum()), ROWS),
    "convolution": (conv, ROWS),
    "convolution, valid": (lambda x: conv(x, padding="VALID"), ROWS),
    "convolution, strided": (lambda x: conv(x, 2, ((1, 1),)), ROWS),
    "convolution, strided, of the same size": (lambda x: conv(x, 3), ROWS),
    "windows": (lambda x: lax.reduce_window(x, -snp.inf, lax.max, (2, 1), (2, 1), "VALID"), ROWS),
    "gradient of windows": (
        st.grad(lambda x: (pooled(x, 2, 2) ** 2).sum() + (pooled(x, 3, 1) ** 2).sum()),
        ROWS,
    ),
    "hessian of windows": (
        lambda x: st.hessian(lambda w: (pooled(snp.tanh(x @ w)[:, None] * x, 2, 2) ** 2).sum())(
            snp.ones(4)
        ),
        ROWS,
    ),
    "sums of windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 1), (1, 1), "SAME"), ROWS),
    "tril": (lambda x: snp.tril(x @ x.T), ROWS),
    "repeat, tile": (lambda x: (snp.repeat(x, 2, 0), snp.tile(x, (2, 1)), snp.stack([x, x])), ROWS),
    "searchsorted": (lambda x: snp.searchsorted(snp.sort(x[:, 0]), x[:, 1]), ROWS),
    "top_k": (lambda x: lax.top_k(x[:, 0], 1), ROWS),
    "interp": (lambda x: snp.interp(x[:, 0], snp.arange(4.0), snp.arange(4.0) ** 2), ROWS),
    "histogram": (lambda x: snp.histogram(x, bins=4), ROWS),
    "random": (lambda x: random.normal(random.key(0), x.shape) + x, ROWS),
    "random in front": (lambda x: random.normal(random.key(1), (3, x.shape[1])) + x, LINES),
    "random bits": (
        lambda x: [random.bits(random.key(2), (3, x.shape[0]), f"uint{w}") for w in (8, 16, 32)],
        ROWS,
    ),
    "dropout": (lambda x: nn.functional.dropout(x, 0.5, key=random.key(0)), ROWS),
    "custom_jvp": (lambda x: nn.functional.relu(x).sum(0), ROWS),
    "gradient": (st.grad(lambda x: (snp.sin(x) ** 2).sum()), ROWS),
    "gradient of attention": (st.grad(lambda x: (attend(x) ** 2).sum()), ROWS),
    "gradient of extrema": (st.grad(lambda x: x.max(0).sum() - x.min()), ROWS),
    "gradient of sort": (
        st.grad(lambda x: (snp.sort(x, 0).T * snp.arange(x.shape[0])).sum()),
        ROWS,
    ),
    "gradient of slices": (st.grad(lambda x: (x[1:] * x[:-1]).sum() + (x[-1] ** 2).sum()), ROWS),
    "gradient of scan": (st.grad(lambda x: recurrent(x)[0].sum() + recurrent(x)[1].sum()), ROWS),
    "gradient of convolution": (st.grad(lambda x: (conv(x) ** 2).sum()), ROWS),
    "gradient by a kernel": (
        lambda x: st.grad(lambda k: (lax.conv(x.T[None], k, (1,), "SAME") ** 2).sum())(
            snp.ones((3, 4, 3))
        ),
        ROWS,
    ),
    "gradient by weights": (
        lambda x: st.grad(lambda w: (snp.tanh(x @ w).mean(0) ** 2).sum())(snp.eye(4)),
        ROWS,
    ),
    "gradient of take": (st.grad(lambda x: (snp.take(x, snp.argsort(x[:, 0]), 0)[0]).sum()), ROWS),
    "fft beside it": (lambda x: snp.abs(snp.fft.fft(x, axis=1)), ROWS),
    "factorizations": (
        lambda x: (
            snp.linalg.cholesky(gram(x)),
            snp.linalg.solve(gram(x), x),
            snp.linalg.slogdet(gram(x))[1],
            snp.linalg.inv(gram(x)),
        ),
        ROWS,
    ),
    "gradient of factorizations": (
        st.grad(
            lambda x: (
                snp.linalg.cholesky(gram(x)).sum()
                + snp.linalg.solve(gram(x), x).sum()
                + snp.linalg.slogdet(gram(x))[1]
            )
        ),
        ROWS,
    ),
    "eigenvalues": (lambda x: snp.linalg.eigvalsh(gram(x)), ROWS),
    "jvp": (lambda x: st.jvp(lambda x: (x**3).mean(), (x,), (x,)), ROWS),
    "hessian": (lambda x: st.hessian(lambda w: snp.tanh(x @ w).sum())(snp.ones(4)), ROWS),
}


def garbage(x, shape):
    """The array in front of a larger one of NaN, infinities and large numbers."""
    whole = np.empty(shape, x.dtype)
    whole[...] = np.nan
    whole.ravel()[::2] = np.inf
    whole.ravel()[1::5] = -1e30
    whole[tuple(slice(n) for n in x.shape)] = x
    return whole


def program_of(f, shapes):
    types = [array_type(shape, F32) for shape in shapes]
    program, structure, captured = record(lambda *xs: st.tree.flatten(f(*xs)), types)
    return program, structure, captured


def check(f, shapes, sizes, bucket):
    program, _, captured = program_of(f, shapes)
    variables = variables_of(program)
    fixed = padded_program(program, variables, dict.fromkeys(variables, bucket))
    run = st.jit(lambda *xs: evaluate(fixed, [*xs, *captured]))
    rng = np.random.default_rng(0)
    for several in sizes:
        known = dict(zip(variables, several))
        at = lambda shape, known=known: tuple(n.known(known) if is_size(n) else n for n in shape)
        most = lambda shape: tuple(bucket if is_size(n) else n for n in shape)
        xs = [rng.normal(size=at(shape)).astype(F32) for shape in shapes]
        wanted = st.tree.leaves(f(*map(snp.asarray, xs)))
        padded = [garbage(x, most(shape)) for x, shape in zip(xs, shapes)]
        got = run(*[np.int32(known[v]) for v in variables], *padded)
        assert [at(t.shape) for t in program.out_types] == [w.shape for w in wanted]
        for a, b in zip(got, wanted):
            valid = np.asarray(a)[tuple(slice(n) for n in b.shape)]
            np.testing.assert_allclose(valid, b, rtol=3e-5, atol=3e-5, err_msg=str(several))
            assert a.dtype == b.dtype


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_without_padding(name):
    f, shapes = PROGRAMS[name]
    even = name == "halves"
    check(f, shapes, [(12, 12), (8, 3), (4, 10)] if even else [(13, 13), (7, 12), (4, 5)], 13)


@pytest.mark.parametrize(
    ("f", "shapes", "match"),
    [
        (lambda x: snp.linalg.eigvals(x @ x.T), ROWS, "eig takes no matrices"),
        (lambda x: snp.fft.fft(x, axis=0), ROWS, "fft takes no axes of a size that varies"),
        (lambda x: random_bits(x.shape[0]), ROWS, "rng_bit_generator gives no bits"),
        (lambda x: st.pure_callback(np.sin, x, x), ROWS, "would be given what is past the sizes"),
    ],
)
def test_what_has_no_rule_is_refused(f, shapes, match):
    with pytest.raises(MissingRuleError, match=match):
        check(f, shapes, [(4, 4)], 5)


def test_one_program_a_bucket_and_its_variables():
    program, *_ = program_of(lambda x, y: x @ y.T, BOTH)
    first, second = variables_of(program)
    assert (first.name, second.name) == ("n", "m")
    bounds = {first: 8, second: 16}
    fixed = padded_program(program, (first, second), bounds)
    assert padded_program(program, (first, second), bounds) is fixed
    assert [t.shape for t in fixed.in_types] == [(), (), (8, 4), (16, 4)]
    assert "f32[n,4], b:f32[m,4]" in str(program)


# Softmax and its like


def known(f):
    program, *_ = program_of(f, ROWS)
    found = below_greatest(program)
    return list(found.differences.values()), list(found.zeros.values())


def test_softmax_is_known_by_its_form():
    assert known(lambda x: nn.functional.softmax(x, 0)) == ([(0,)], [(0,), (0,)])
    assert known(lambda x: nn.functional.softmax(x @ x.T, -1)) == ([(1,)], [(1,), (1,)])
    assert known(lambda x: snp.exp(x - lax.stop_gradient(x).max((0, 1)))) == ([(0, 1)], [(0, 1)])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: snp.exp(x - x.min(0)),
        lambda x: snp.exp(x - snp.max(x * 2, 0)),
        lambda x: snp.exp(x @ x.T - (x @ x.T).max(1)),  # of another row
        lambda x: snp.exp(x - 1),
    ],
)
def test_nothing_else_is(f):
    assert known(f) == ([], [])


def test_quotients_by_another_sum_are_not():
    f = lambda x: (y := snp.exp(x - x.max(0))) / (y.sum(1, keepdims=True))
    assert known(f) == ([(0,)], [(0,)])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_values_of_softmax_are_those_without_padding(value):
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4) / 9
    x[1, 2] = value
    x[:, 3] = value
    f = lambda x: (
        nn.functional.softmax(x, 0),
        nn.functional.softmax(x, 0).sum(0),
        nn.functional.softmax(x @ x.T, -1) @ x,
        snp.exp(x - x.max(0)).sum(),
    )
    got = st.jit(f, dynamic_axes=({0: "n"},))(x)
    for a, b in zip(got, f(snp.asarray(x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
