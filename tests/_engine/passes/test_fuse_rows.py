"""Operations along rows in one call: what is found, and that values and derivatives stay."""

import itertools
import math

import numpy as np
import pytest
import scipy.special

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.graph import make_graph
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.kernels import kernels
from stretto._engine.lowering import stablehlo
from stretto._engine.ops import row_program
from stretto._engine.ops.fused_rows import FusedRows
from stretto._engine.passes.barriers import run_on_xla_thread
from stretto._engine.passes.fuse_rows import fuse_rows
from stretto._engine.passes.prepare import prepare

F = nn.functional
ROWS, COLUMNS = 96, 80


def by_hand(x):
    e = snp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def masked(x):
    return F.softmax(snp.where(snp.arange(COLUMNS) < 60, x, -snp.inf), dim=-1)


def standardized(x):
    return (x - x.mean(-1, keepdims=True)) / snp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def layer_norm(x):
    columns = snp.arange(COLUMNS) / COLUMNS
    return F.layer_norm(x, (COLUMNS,), columns.astype(x.dtype), 1 - columns.astype(x.dtype))


def twice(x):
    """With something between that is not along rows."""
    y = F.softmax(x, dim=-1)
    return F.softmax(y @ y.T @ x + x, dim=-1)


def crossed(x):
    """With a way round: what is between the two depends on the one, and the other on both."""
    y = by_hand(x)
    return by_hand(snp.sort(y, axis=-1) + y) + y


def loss(x):
    labels = snp.arange(ROWS) * 7 % COLUMNS
    return F.cross_entropy(x, labels, reduction="none")


def channels(x):
    return (snp.arange(24) / 24 + 0.5).astype(x.dtype)


def loss_of_pixels(x):
    labels = snp.arange(4 * 80).reshape(4, 8, 10) % 24
    return F.cross_entropy(x.reshape(4, 24, 8, 10), labels, reduction="none")


def norm_over_channels(x):
    """A norm of images over their channels, with a weight for each."""
    y, w = x.reshape(4, 24, 8, 10), channels(x)[:, None, None]
    apart = y - y.mean(1, keepdims=True)
    return apart / snp.sqrt((apart**2).mean(1, keepdims=True) + 1e-5) * w + w


def group_norm(x, shape=(4, 24, 8, 10)):
    w = (snp.arange(shape[1]) / 24 + 0.5).astype(x.dtype)
    return F.group_norm(x.reshape(shape), shape[1] // 4 if shape[1] % 4 == 0 else 6, w, 1 - w)


def instance_norm(x):
    w = channels(x)
    return F.instance_norm(x.reshape(4, 24, 8, 10), weight=w, bias=w)


FUNCTIONS = {
    "softmax": (lambda x: F.softmax(x, dim=-1), 1, 1),
    "log_softmax": (lambda x: F.log_softmax(x, dim=-1), 1, 1),
    "by hand": (by_hand, 1, 1),
    "masked": (masked, 1, 1),
    "standardized": (standardized, 1, 1),
    "layer_norm": (layer_norm, 1, 1),
    "rms_norm": (lambda x: F.rms_norm(x, (COLUMNS,)), 1, 1),
    "logsumexp": (lambda x: st.scipy.special.logsumexp(x, axis=-1), 1, 1),
    "cross_entropy": (loss, 1, 1),
    "twice": (twice, 2, 3),
    "crossed": (crossed, 2, None),
    "two axes": (lambda x: F.layer_norm(x.reshape(ROWS, 8, 10), (8, 10)), 1, 1),
    "other axis": (lambda x: F.softmax(x, dim=0), 1, 1),
    "pixels": (lambda x: F.softmax(x.reshape(4, 24, 8, 10), dim=1), 1, 1),
    "log_softmax of pixels": (lambda x: F.log_softmax(x.reshape(6, 16, 80), dim=1), 1, 1),
    "cross_entropy of pixels": (loss_of_pixels, 1, None),
    "norm over channels": (norm_over_channels, 1, None),
    "group_norm": (group_norm, 1, None),
    "group_norm of odd sizes": (lambda x: group_norm(x, (16, 30, 4, 4)), 1, None),
    "instance_norm": (instance_norm, 1, None),
    "curves": (lambda x: F.softmax(snp.tanh(x) * st.special.erf(x), dim=-1), 1, 1),
    "sum alone": (lambda x: x.sum(-1), 0, 0),
}
"""Each with the calls in its program, and in that of its derivative where they are known."""


@pytest.fixture
def x(dtype):
    with st.enable_x64(dtype == "float64"):
        yield drawn(dtype)


def drawn(dtype):
    return np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(dtype) * 3


def _derivative(f):
    """The derivative of a sum with unequal weights."""

    def weighted(x):
        y = f(x)
        return (y * snp.cos(snp.arange(y.size, dtype=y.dtype)).reshape(y.shape)).sum()

    return st.grad(weighted)


def _calls(f, *args):
    program = fuse_rows(prepare(make_graph(f)(*args)))
    check(program)
    return sum([isinstance(e.primitive, FusedRows) for e in program.equations])


LEFT = {
    "softmax": ("", "iota cos"),
    "log_softmax": ("", "iota cos"),
    "masked": ("constant", "constant iota cos"),
    "standardized": ("", "iota cos"),
    "layer_norm": ("constant div sub", "constant div iota cos"),
    "rms_norm": ("", "iota cos"),
    "logsumexp": ("reshape", "iota cos mul"),
    "crossed": ("sort", "iota sort reshape iota cos scatter_add"),
    "two axes": ("", "iota cos reshape"),
}
"""What is left beside the calls, of some of them and of their derivatives with unequal weights."""


@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("name", LEFT)
def test_what_is_beside_the_calls(name, x):
    f = FUNCTIONS[name][0]
    for function, left in zip((f, _derivative(f)), LEFT[name], strict=True):
        names = [e.primitive.name for e in fuse_rows(prepare(make_graph(function)(x))).equations]
        assert " ".join(n for n in names if n != "fused_rows") == left


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_finds_rows(name, x):
    f, calls, _ = FUNCTIONS[name]
    assert _calls(f, x) == calls


@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if FUNCTIONS[name][2] is not None])
def test_finds_rows_of_derivatives(name, x):
    f, _, calls = FUNCTIONS[name]
    assert _calls(_derivative(f), x) == calls


def _with_and_without(f, *args):
    with st.config(kernels=False):
        without = st.jit(f)(*args)
    return st.jit(f)(*args), without


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_keeps_values_and_derivatives(name, x):
    f = FUNCTIONS[name][0]
    eps = np.finfo(x.dtype).eps
    for g in (f, _derivative(f)):
        got, expected = _with_and_without(g, x)
        expected = np.asarray(expected)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=64 * eps, atol=64 * eps * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_members_have_their_own_rows(name, x):
    f, eps = _derivative(FUNCTIONS[name][0]), np.finfo(x.dtype).eps
    members = np.stack([x, x[::-1] / 2, x + 1])
    got = np.asarray(st.jit(st.vmap(f))(members))
    for one, member in zip(got, members, strict=True):
        with st.config(kernels=False):
            expected = np.asarray(st.jit(f)(member))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(one, expected, rtol=64 * eps, atol=64 * eps * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "by hand", "layer_norm", "logsumexp", "pixels"]
)
def test_keeps_what_is_not_finite(name, x):
    x[0] = -np.inf
    x[1, 3] = np.nan
    x[2, :5] = -np.inf
    x[3, 7] = np.inf
    x[4] = 0
    x[5] = 1e30
    f = FUNCTIONS[name][0]
    for g in (f, _derivative(f)):
        got, expected = map(np.asarray, _with_and_without(g, x))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32"])
def test_reads_what_is_repeated(x):
    given = x[:12].reshape(2, 3, 2, COLUMNS)
    rng = np.random.default_rng(1)
    mask = rng.integers(0, 2, (2, COLUMNS)).astype(bool)
    for shape in [(2, 1, 2, COLUMNS), (2, 1, 1, COLUMNS), (1, 3, 2, 1), (3, 1, COLUMNS), ()]:
        added = rng.standard_normal(shape).astype(x.dtype)
        f = lambda x, y, mask: F.softmax(snp.where(mask, x + y, -1e9), dim=-1)
        with st.config(kernels=False):
            expected = st.jit(f)(given, added, mask)
        big = [
            np.tile(given, (8, 1, 1, 1)),
            np.tile(added, (8, 1, 1, 1)) if shape[:1] == (2,) and len(shape) == 4 else added,
            mask,
        ]
        assert _calls(f, *big) == 1
        got = np.asarray(st.jit(f)(*big))
        np.testing.assert_allclose(got[:2], expected, rtol=2e-6, atol=1e-7)
        np.testing.assert_array_equal(got[:2], got[-2:])


def columns(dtype="float32"):
    return snp.arange(COLUMNS, dtype=dtype)


def labels(*shape, dtype="float32"):
    return snp.asarray(np.random.default_rng(1).integers(0, COLUMNS, shape).astype(dtype))


def on_the_diagonal(x):
    """With one array for the numbers of columns, and for those of rows."""
    numbers = snp.arange(COLUMNS)
    return F.softmax(x[:COLUMNS] * (numbers[:, None] == numbers), dim=-1)


NUMBERED = {
    "columns": lambda x: F.softmax(x * columns(), dim=-1),
    "rows": lambda x: F.softmax(x * snp.arange(ROWS, dtype="float32")[:, None], dim=-1),
    "a diagonal": lambda x: F.softmax(
        x * (snp.arange(COLUMNS) == snp.arange(ROWS)[:, None]), dim=-1
    ),
    "labels": lambda x: (F.softmax(x, dim=-1) * (columns() == labels(ROWS, 1))).sum(-1),
    "labels at every place": lambda x: (
        F.softmax(x, dim=-1) * (columns("int32") == labels(ROWS, COLUMNS, dtype="int32"))
    ).sum(-1),
    "labels, and columns themselves": lambda x: (
        F.softmax(x * columns(), dim=-1) * (columns() == labels(ROWS, 1))
    ).sum(-1),
    "the diagonal of a square": on_the_diagonal,
}


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_of_rows_and_columns(name, x):
    """They are counted where a label is compared with them, and are an array elsewhere."""
    f = NUMBERED[name]
    for g in (f, _derivative(f)):
        got, expected = _with_and_without(g, x)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    program = fuse_rows(prepare(make_graph(f)(x)))
    check(program)
    names = [e.primitive.name for e in program.equations]
    assert ("eq" in names) == (name in ("labels at every place", "the diagonal of a square"))


@pytest.mark.parametrize("dtype", ["float32"])
def test_reads_one_array_in_several_ways(x):
    def across(x, b):
        y = x[:COLUMNS, :COLUMNS] + b[:, None] * 2 + b[None, :]
        return F.softmax(y * b, dim=-1) + b[None, :1]

    assert _calls(across, x, x[0]) == 1
    for f in (across, st.grad(lambda x, b: (across(x, b) ** 2).sum(), argnums=1)):
        got, expected = _with_and_without(f, x, x[0])
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_operations_along_two_arrays_are_one_call_by_what_reads_both(order, x):
    """In whatever order: those of the one, those of both, and those of the other."""

    def f(x):
        y = snp.sort(x, axis=0)
        of_x = lambda: F.softmax(x, dim=-1)
        of_y = lambda: F.softmax(y, dim=-1)
        of_both = lambda: x * y / (x * y).max(-1, keepdims=True)
        return [(of_x, of_both, of_y)[k]() for k in order]

    program = fuse_rows(prepare(make_graph(f)(x)))
    check(program)
    assert [e.primitive.name for e in program.equations] == ["sort", "fused_rows"]
    for got, expected in zip(*_with_and_without(f, x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def waiting(x):
    """The third reads the same rows, and a sort of what the second gives, which joins the first."""
    y = snp.sort(x, axis=0)
    one, other = F.softmax(x, dim=-1), x * y / (x * y).max(-1, keepdims=True)
    return one, other, F.softmax(snp.sort(other, axis=-1) + x, dim=-1)


def meeting(x):
    """Two meet in a product; what is added to it was sorted from one of them."""
    y = snp.sort(x, axis=0)
    one, other = x - x.max(-1, keepdims=True), y - y.max(-1, keepdims=True)
    return F.softmax(one * other + snp.sort(other, axis=-1), dim=-1)


@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("f", [waiting, meeting])
def test_nothing_waits_for_what_waits_for_it(f, x):
    program = fuse_rows(prepare(make_graph(f)(x)))
    check(program)
    names = [e.primitive.name for e in program.equations]
    assert names == ["sort", "fused_rows", "sort", "fused_rows"]
    for got, expected in zip(*map(st.tree.leaves, _with_and_without(f, x)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32"])
def test_what_was_noted_of_a_program_stays(x):
    program = prepare(make_graph(by_hand)(x))
    program.cache["noted"] = [("a formula", None)]
    assert fuse_rows(program).cache["noted"] == [("a formula", None)]
    assert "noted" not in fuse_rows(prepare(make_graph(standardized)(x))).cache


@pytest.mark.parametrize("dtype", ["float32"])
def test_calls_of_python_keep_their_order(x):
    """What one tells depends on rows, and the next must not wait for what waits for it."""

    def f(x, tell):
        y = F.softmax(x, dim=-1)
        st.io_callback(tell, None, y.sum(), ordered=True)
        z = F.softmax(x * 2 + y, dim=-1)
        st.io_callback(tell, None, z.max(), ordered=True)
        return y + z

    told = []
    program = fuse_rows(prepare(make_graph(lambda x: f(x, lambda v: None))(x)))
    check(program)
    st.jit(lambda x: f(x, lambda v: told.append(float(v))))(x).block_until_ready()
    assert len(told) == 2 and told[0] == pytest.approx(ROWS, rel=1e-5) and told[1] < 2


def chained(n, op=None):
    """Rows, changed by their own scalars so often, that two calls read; a sort is between them."""

    def f(x):
        m, s = x.max(-1, keepdims=True), x.sum(-1, keepdims=True)
        v = x
        for i in range(n):
            v = v * s if i % 2 else v - m
        v = op(v) if op else v
        y = snp.sort(x * snp.exp(v).sum(-1, keepdims=True), axis=-1)
        e = snp.exp(y - y.max(-1, keepdims=True)) * v
        return e / e.sum(-1, keepdims=True)

    return f


@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize(
    ("n", "op", "rows", "scalars"),
    [(1, None, 1, 1), (2, None, 1, 2), (3, None, 1, 2), (4, None, 2, 0), (1, snp.exp, 2, 0)],
)
def test_what_is_cheap_is_computed_again(n, op, rows, scalars, x):
    """Up to three differences and products: their scalars are written rather than themselves."""
    program = fuse_rows(prepare(make_graph(chained(n, op))(x)))
    assert [e.primitive.name for e in program.equations] == ["fused_rows", "sort", "fused_rows"]
    sizes = [v.type.size for v in program.equations[0].outputs]
    assert (sizes.count(ROWS * COLUMNS), sizes.count(ROWS)) == (rows, scalars)
    f = lambda x: chained(n, op)(x * 0.1)
    got, expected = _with_and_without(f, x)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_who_calls_does_not_wait_for_the_kernel():
    program = prepare(make_graph(by_hand)(np.ones((2048, 1024), np.float32)))
    assert len(run_on_xla_thread(program).equations) > len(program.equations)
    with st.config(kernels=False):
        program = prepare(make_graph(by_hand)(np.ones((2048, 1023), np.float32)))
        assert run_on_xla_thread(program) is program


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("on", [True, False])
def test_calls_where_kernels_are_on(on):
    with st.config(kernels=on):
        text = st.jit(by_hand).lower(snp.ones((ROWS, COLUMNS))).as_text()
    assert ("stretto_rows" in text) == on


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_written_out_without_kernels(name, x, monkeypatch):
    monkeypatch.setattr(stablehlo, "kernels", None)
    f = _derivative(FUNCTIONS[name][0])
    text = st.jit(lambda x: f(x)).lower(x).as_text()  # noqa: PLW0108 (compiled anew)
    assert "stretto_rows" not in text
    got = np.asarray(st.jit(lambda x: f(x))(x))  # noqa: PLW0108
    monkeypatch.undo()
    expected = np.asarray(st.jit(lambda x: f(x))(x))  # noqa: PLW0108
    eps, scale = np.finfo(x.dtype).eps, np.abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=64 * eps, atol=64 * eps * scale)


@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reference(name, x):
    f = FUNCTIONS[name][0]
    program = fuse_rows(prepare(make_graph(f)(x)))
    got = np.asarray(evaluate(program, [snp.asarray(x)])[0])
    np.testing.assert_allclose(got, st.jit(f)(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32"])
def test_leaves_out_what_is_too_large_for_the_kernel(x, monkeypatch):
    monkeypatch.setattr(row_program, "_MOST", 1)
    assert _calls(_derivative(layer_norm), x) == 0


def _spread(dtype, ends):
    """Numbers over the range of a function, and those at its ends."""
    rng, tiny = np.random.default_rng(0), float(np.finfo(dtype).tiny)
    low, high = ends
    numbers = [rng.uniform(low, high, 8000), rng.uniform(-1.5, 1.5, 4000)]
    numbers += [np.exp(rng.uniform(np.log(4 * tiny), np.log(max(high, 1)), 4000))]
    numbers += [[0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, high, low, 1e30, -1e30]]
    x = np.concatenate(numbers).astype(dtype)
    return np.resize(x, (200, 80)), x


CURVES = {
    # SciPy's own is off by 60 in float64.
    "erf": (st.special.erf, np.vectorize(math.erf, otypes=[np.float64]), (-6, 6), 3),
    "erfc": (st.special.erfc, np.vectorize(math.erfc, otypes=[np.float64]), (-6, 9), 6),
    "tanh": (snp.tanh, np.tanh, (-12, 12), 3),
    "logistic": (lambda x: 1 / (1 + snp.exp(-x)), scipy.special.expit, (-15, 15), 3),
    "log": (snp.log, np.log, (0, 1e30), 1.5),
    "log1p": (snp.log1p, np.log1p, (-1, 1e30), 2),
}
"""Each with its twin, the ends of its range, and the units in the last place that it may be off:
``erfc`` by 4 and ``tanh`` by 2 where a product and a sum are rounded once."""


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CURVES)
def test_curves_are_near_the_true_values(name, dtype):
    f, twin, ends, units = CURVES[name]
    rows, _ = _spread(dtype, ends)
    # With something along rows, so that the kernel is called for both dtypes.
    along = lambda x: snp.where(snp.isnan(x.max(-1, keepdims=True)) & (x == 12345), 0.0, f(x))
    with st.enable_x64(dtype == "float64"):
        assert _calls(along, rows) == 1
        got = np.asarray(st.jit(along)(rows))
    wide = np.longdouble if name in ("tanh", "log", "log1p", "logistic") else np.float64
    with np.errstate(all="ignore"):
        expected = twin(rows.astype(wide))
    rounded = expected.astype(dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(rounded))
    np.testing.assert_array_equal(np.signbit(got[rows == 0]), np.signbit(rounded[rows == 0]))
    normal = np.isfinite(rounded) & (np.abs(rounded) >= np.finfo(dtype).tiny)
    apart = np.abs(got[normal] - expected[normal]) / np.spacing(np.abs(rounded[normal]))
    assert apart.max() <= units


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize(
    "shape, calls",
    [
        ((1, 3), 1),
        ((3, 16), 1),
        ((256, 15), 1),
        ((257, 15), 0),
        ((257, 16), 1),
        ((5, 1), 0),
        ((0, 16), 0),
    ],
)
def test_few_rows_are_a_call_where_no_loop_repeats_them(shape, calls):
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    once = lambda x: F.softmax(x, dim=-1)
    repeated = lambda x: st.lax.fori_loop(0, 3, lambda _, x: once(x), x)
    assert _calls_in_text(once, x) == calls
    assert _calls_in_text(repeated, x) == 0
    expected = np.exp(x.astype("float64"))
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(st.jit(once)(x), expected, rtol=1e-6)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_a_row_that_one_thread_would_take_long_for_is_left_to_xla():
    once = lambda x: F.softmax(x, dim=-1)
    assert _calls_in_text(once, snp.ones((1, 1 << 16))) == 1
    assert _calls_in_text(once, snp.ones((1, (1 << 16) + 1))) == 0


def _calls_in_text(f, x):
    return st.jit(f).lower(x).as_text().count("stretto_rows")
