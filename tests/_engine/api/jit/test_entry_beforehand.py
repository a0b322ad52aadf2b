"""What arguments do not enter is done once, and gives what it gave."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit import entry
from stretto._engine.api.jit.entry import beforehand, with_equal_ones_merged
from stretto._engine.autodiff.evaluate import evaluate, record_closed

X = np.linspace(-1.0, 1.0, 6, dtype=np.float32)


def text_of(f, *args):
    return st.jit(f).lower(*args).as_text()


@pytest.fixture
def evaluations(monkeypatch):
    """The programs that are evaluated beforehand."""
    seen = []

    def noting(program, values):
        seen.append(program)
        return evaluate(program, values)

    monkeypatch.setattr("stretto._engine.api.jit.entry.evaluate", noting)
    return seen


@pytest.mark.parametrize(
    ("made", "gone"),
    [
        (lambda w: snp.sin(w) * 2, "stablehlo.sine"),
        (lambda w: snp.linalg.cholesky(w @ w.T + snp.eye(6)), "lapack"),
        (lambda w: snp.sort(w, axis=0), "stablehlo.sort"),
        (lambda w: w * (w > 0), "stablehlo.compare"),
        (lambda w: snp.cos(snp.arange(36.0)).reshape(6, 6), "stablehlo.cosine"),
        (lambda w: st.random.normal(st.random.key(3), (6, 6)), "stablehlo.shift_right_logical"),
    ],
    ids=["sin", "cholesky", "sort", "mask", "positions", "draws"],
)
def test_work_on_captured_arrays_is_done_once(made, gone, evaluations):
    w = snp.asarray(np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32))
    x = snp.asarray(X)

    def f(x):
        return made(w) @ x

    assert gone not in text_of(f, x)
    with st.config(simplify=False):
        assert gone in text_of(f, x)
    evaluations.clear()
    compiled = st.jit(f)
    with st.config(interpret_small=False):
        outs = [compiled(x) for _ in range(4)]
    assert len(evaluations) == 1
    for out in outs:
        np.testing.assert_allclose(out, f(x), rtol=2e-6, atol=1e-6)


def test_what_xla_does_on_the_way_stays(evaluations):
    w = snp.asarray(np.ones((6, 4), np.float32))
    x = snp.asarray(X)
    assert "stablehlo.compare" in text_of(lambda x: snp.where(snp.arange(500) < 3, x[0], 0), x)
    st.jit(lambda x: x @ w.T.reshape(6, 4))(x)
    st.jit(lambda x: x + snp.broadcast_to(w[0, 0], (6,)))(x)
    st.jit(lambda x: x + snp.asarray(X))(x)
    assert not evaluations


def test_what_would_grow_stays(evaluations):
    w = snp.asarray(np.arange(3000, dtype=np.float32))
    text = text_of(lambda x: x * (w[:, None] - w[None, :]).sum(), 1.0)
    assert "stablehlo.subtract" in text
    assert not evaluations


def test_dead_work_is_not_done(evaluations):
    w = snp.asarray(np.ones((6, 6), np.float32))

    def f(x):
        snp.linalg.inv(w)
        return x + 1

    st.jit(f)(snp.asarray(X))
    assert not evaluations


def test_callbacks_and_effects_stay():
    w = snp.asarray(X)
    seen = []

    def doubled(w):
        seen.append(1)
        return 2 * w

    def f(x):
        return x + st.pure_callback(doubled, w, w)

    compiled = st.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(w), 3 * X)
    assert len(seen) >= 3


def test_a_captured_array_may_be_a_result_too():
    w = snp.asarray(X)
    once = st.jit(lambda x: (w, snp.exp(w), x + snp.exp(w), snp.exp(w) * snp.exp(w)))
    for _ in range(3):
        a, b, c, d = once(w)
        np.testing.assert_array_equal(a, X)
        np.testing.assert_allclose(b, np.exp(X), rtol=1e-6)
        np.testing.assert_allclose(c, X + np.exp(X), rtol=1e-6)
        np.testing.assert_allclose(d, np.exp(X) ** 2, rtol=1e-6)


def test_without_arguments():
    w = snp.asarray(X)
    np.testing.assert_allclose(st.jit(lambda: snp.tanh(w) @ w)(), np.tanh(X) @ X, rtol=1e-6)


def test_under_other_transformations():
    w = snp.asarray(np.random.default_rng(1).normal(size=(6, 6)).astype(np.float32))
    x = snp.asarray(X)

    def f(x):
        return snp.sum(snp.tanh(snp.linalg.inv(w @ w.T + snp.eye(6)) @ x))

    np.testing.assert_allclose(st.jit(st.grad(f))(x), st.grad(f)(x), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(st.grad(st.jit(f))(x), st.grad(f)(x), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        st.jit(st.vmap(f))(snp.stack([x, 2 * x])), snp.stack([f(x), f(2 * x)]), rtol=1e-4, atol=1e-6
    )


def test_with_donated_and_unused_arguments():
    w = snp.asarray(X)
    f = st.jit(lambda x, y, unused: x * snp.exp(w) + y, donate_argnums=0, keep_unused=True)
    for _ in range(3):
        x = snp.asarray(2 * X)
        np.testing.assert_allclose(f(x, w, w), 2 * X * np.exp(X) + X, rtol=1e-6)


def test_ahead_of_time():
    w = snp.asarray(X)
    stage = st.jit(lambda x: x + snp.exp(w)).lower(w)
    np.testing.assert_allclose(stage.compile()(w), X + np.exp(X), rtol=1e-6)


def test_values_captured_anew_are_not_taken_for_those_before():
    outs = []
    for k in range(3):
        w = snp.asarray(X + k)
        outs.append(st.jit(lambda x, w=None, k=k: x + snp.exp(snp.asarray(X + k)))(w))
    for k, out in enumerate(outs):
        np.testing.assert_allclose(out, X + k + np.exp(X + k), rtol=1e-6)


def test_equal_captured_arrays_are_one():
    table = np.random.default_rng(2).normal(size=(6, 6)).astype(np.float32) / 4
    zeros, minus = np.zeros(6, np.float32), -np.zeros(6, np.float32)

    def f(x):
        for _ in range(100):
            x = snp.tanh(x @ table)
        return x + zeros, x * 0 + minus

    x = snp.asarray(X)
    lowered = st.jit(f).lower(x)
    text = lowered.as_text()
    assert text.count("stablehlo.tanh") < 10, "the steps are one loop"
    arguments = text[: text.index("{", text.index("func.func"))].count("tensor<6")
    with st.config(simplify=False):
        unmerged = st.jit(f).lower(x).as_text()
    assert unmerged[: unmerged.index("{", unmerged.index("func.func"))].count("tensor<6") > 100
    assert arguments == 4 + 2  # x, the table, zeros of both signs; results
    for out, like in zip(lowered.compile()(x), f(x), strict=True):
        np.testing.assert_allclose(out, like, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.signbit(out), np.signbit(like))


# The bounds of what is done beforehand, and of what is compared.


def left_to_do(f, argument, captured):
    """The operations that stay of a function of an argument and a captured array."""
    program = st.make_graph(f)(argument, captured)
    after, _ = beforehand(program, [captured])
    return [e.primitive.name for e in after.equations]


@pytest.mark.parametrize(("rows", "is_done"), [(1024, True), (1025, False)])
def test_results_of_four_mebibytes_are_kept_though_they_grow(rows, is_done):
    f = lambda a, x: a * snp.sort(snp.broadcast_to(x, (rows, 1024)), 0).sum()
    assert ("sort" not in left_to_do(f, 1.0, snp.zeros(1024))) is is_done


def test_results_of_more_than_64_mebibytes_are_not_kept():
    f = lambda a, x: a * snp.sin(x)
    assert "sin" in left_to_do(f, snp.float32(1), snp.zeros((1 << 24) + 1))
    assert "sin" not in left_to_do(f, snp.float32(1), snp.zeros(1 << 10))


@pytest.mark.parametrize(("size", "are_one"), [(1 << 18, True), ((1 << 18) + 1, False)])
def test_arrays_of_a_mebibyte_are_compared(size, are_one):
    one, other = snp.asarray(np.zeros(size, "f4")), snp.asarray(np.zeros(size, "f4"))
    program = st.make_graph(lambda x, y: x + y)(one, other)
    (add,) = with_equal_ones_merged(program, [one, other]).equations
    assert (add.inputs[0] is add.inputs[1]) is are_one


@pytest.mark.parametrize(("most", "is_done"), [(2047, False), (2048, True), (2049, True)])
def test_all_results_together_are_kept_up_to_the_limit(monkeypatch, most, is_done):
    monkeypatch.setattr(entry, "_MOST_KEPT", most)
    f = lambda a, x: a * snp.sin(x) + snp.cos(x)
    left = left_to_do(f, snp.float32(1), snp.zeros(256))
    assert ("sin" not in left) is ("cos" not in left) is is_done


ROWS = np.arange(8, dtype=np.int32)
M = np.ones((8, 8), np.float32)
ON_THE_WAY = {
    "sum": (lambda x: x + 1, M, True),
    "whole numbers": (lambda i: i & 1, ROWS, True),
    "choice": (lambda x: snp.where(x > 0, x, -x), M, True),
    "dtype": (lambda x: x.astype(np.int32), M, True),
    "turned": (lambda x: x.T, M, True),
    "positions": (lambda x: snp.arange(8), M, True),
    "sums of rows": (lambda x: x.sum(0), M, True),
    "greatest": (lambda x: x.max(), M, True),
    "a product of vectors": (lambda x: x[0][:, None] @ x[:1], M, True),
    "a matrix and a vector": (lambda x: x @ x[0], M, True),
    "a product of four columns": (lambda x: x[:, :4] @ x[:4], M, True),
    "a product of five columns": (lambda x: x[:, :5] @ x[:5], M, False),
    "sine": (snp.sin, M, False),
    "a product": (lambda x: x @ x, M, False),
    "sorted": (snp.sort, M, False),
    "chosen rows": (lambda x: x[ROWS], M, False),
    "running sums": (lambda x: snp.cumsum(x, 0), M, False),
    "several results": (lambda x: snp.linalg.qr(x)[0], M, False),
}


@pytest.mark.parametrize("name", ON_THE_WAY)
def test_what_xla_computes_while_it_reads(name):
    f, x, fused = ON_THE_WAY[name]
    equation = st.make_graph(f)(snp.asarray(x)).equations[-1]
    assert entry._fused(equation) is fused


def test_equal_arrays_are_read_as_the_first_of_them():
    """Results too; what differs in dtype, shape or a sign stays."""
    one = np.zeros(4, np.float32)
    others = [one.copy(), -one, one.astype(np.int32), one.reshape(2, 2), one.copy()]
    captured = [snp.asarray(x) for x in (one, *others)]

    def f(a, *xs):
        return a * xs[0], a * xs[1], a * xs[2], a * xs[3], xs[4], xs[5]

    program = st.make_graph(f)(snp.float32(2), *captured)
    new = with_equal_ones_merged(program, captured)
    assert new.inputs == program.inputs
    read = [e.inputs[1] for e in new.equations if e.primitive.name == "mul"]
    assert read[0] is read[1] is new.inputs[1] and read[2] is new.inputs[3]
    assert new.outputs[-1] is new.inputs[1] and new.outputs[-2] is new.inputs[5]
    apart = [snp.asarray(one + k) for k in range(6)]
    program = st.make_graph(f)(snp.float32(2), *apart)
    assert with_equal_ones_merged(program, apart) is program


@pytest.mark.parametrize(
    ("f", "done", "left"),
    [
        # What is computed while its operands are read is done if it has no more bytes than they.
        (lambda a, x: a * (x[0] + 1), {"add"}, set()),
        (lambda a, x: a * (x + x[0]), {"add"}, set()),
        # A product is read as a whole, so that what follows has no more bytes than it.
        (lambda a, x: a[:99] * (x[:99, :9] @ x[:9, :99] + 1), {"dot_general", "add"}, set()),
        (lambda a, x: a * x.T.sum(), {"reduce_sum"}, set()),
        (lambda a, x: a[0] * x.T, set(), {"transpose"}),
        # Of numbers alone XLA makes what is needed.
        (lambda a, x: a[:9] * snp.sort(snp.zeros(9)) * x[0, :9], set(), {"sort"}),
        (lambda a, x: a[:9] * snp.sin(x.T[:, :9]), {"sin", "transpose"}, set()),
    ],
)
def test_what_costs_more_to_read_than_to_compute_stays(f, done, left):
    names = {*left_to_do(f, snp.ones(100), snp.ones((100, 100)))}
    assert not names & done and names >= left


def test_work_on_a_constant_of_the_program_is_done():
    table = snp.asarray(np.arange(1000, dtype=np.float32))
    program, _ = record_closed(lambda a: ([a * (table + 1)], None), [table.type], "f")
    assert [e.primitive.name for e in program.equations] == ["constant", "add", "mul"]
    after, values = beforehand(program, [])
    assert [e.primitive.name for e in after.equations] == ["mul"]
    np.testing.assert_array_equal(*values, np.arange(1000) + 1)
