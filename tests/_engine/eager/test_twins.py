"""Twins in NumPy: when they are taken, and that they change nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.config import enable_x64
from stretto._engine.eager import twins
from stretto._engine.eager.twins import ANY, AS_GIVEN, FLOAT, INDEX, INTEGER, REAL, eager

X = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 3e-3, 7.0, -7.0], np.float32)
Y = np.array([-0.0, 0.0, np.nan, 2.5, 1.0, -np.inf, -np.nan, -3e-3, 2.0, -2.0], np.float32)
K = np.array([0, 1, -1, 7, -7, 12, 2**31 - 1, -(2**31) + 1, 6, 4], np.int32)
J = np.array([3, 0, 4, -7, 5, 18, 2, 3, -4, 10], np.int32)
M = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


# When it is taken


def twin_of(twin, kinds, dtype=None, options=False):
    """A function with this twin that says by ``None`` that it was called itself."""
    decorate = eager(twin, kinds) if dtype is None else eager(twin, kinds, dtype)
    if options:
        return decorate(lambda x, *, axis=None: None)
    return decorate(lambda *xs: None)


def test_plain_arrays_at_rest():
    x = snp.asarray(X)
    out = twin_of(np.trunc, FLOAT)(x)
    assert out.type is x.type
    np.testing.assert_array_equal(np.asarray(out), np.trunc(X))
    assert twin_of(np.trunc, INTEGER)(x) is None


@pytest.mark.parametrize("x64", [False, True])
def test_dtypes_of_the_results(x64):
    x = snp.asarray(X[:4])
    whole, exponent = twin_of(np.frexp, FLOAT, (None, np.dtype(np.int32)))(x)
    assert (whole.dtype, exponent.dtype) == (np.float32, np.int32)
    with enable_x64(x64):
        assert twin_of(np.argmax, FLOAT, INDEX)(x).dtype == (np.int64 if x64 else np.int32)
    assert twin_of(np.isnan, FLOAT, AS_GIVEN)(x).dtype == bool
    assert twin_of(lambda x: [x, x[1:]], FLOAT)(x)[1].shape == (3,)


def test_numbers_take_the_dtype_of_the_array():
    x = snp.asarray(X[:4])
    fmax = twin_of(np.fmax, REAL)
    assert fmax(x, 1).dtype == np.float32
    assert fmax(1.0, x).dtype == np.float32
    assert fmax(snp.asarray(K), 1.5) is None
    assert fmax(1.0, 2.0) is None


@pytest.mark.parametrize(
    "argument",
    [X, snp.asarray(1.0) * 2, 2.0, snp.asarray(X).astype(snp.float16), snp.asarray(K > 0)],
    ids=["NumPy's", "weak", "number", "narrow", "bool"],
)
def test_others_go_the_general_way(argument):
    assert twin_of(np.square, FLOAT)(argument) is None
    assert twin_of(lambda x, y: x, FLOAT)(argument, argument) is None
    assert twin_of(np.add, FLOAT)(argument, snp.asarray(K)) is None


def test_any_dtype_is_moved_and_stays_weak():
    moved = twin_of(np.flip, ANY)
    assert moved(snp.asarray(X).astype(snp.bfloat16)).dtype == snp.bfloat16
    weak = snp.asarray(1.0) * 2
    assert weak.weak_type
    assert moved(weak).weak_type
    assert moved(weak, snp.asarray(K)) is None


def test_kinds_of_each():
    at = snp.asarray(np.array([1, 0]))
    take = twin_of(np.take, (REAL, INTEGER))
    assert take(snp.asarray(X), at).tolist() == [0.0, 0.0]
    assert take(snp.asarray(X), snp.asarray(X)) is None
    assert take(snp.asarray(X), [1, 0]) is None


def test_wrong_arguments_are_for_the_function_to_refuse():
    def floor(x):
        return "itself"

    function, x = eager(np.floor, FLOAT)(floor), snp.asarray(X)
    assert function(x).dtype == np.float32
    assert function(x=x) == "itself"
    for arguments, options in [((x, x), {}), ((), {}), ((x,), {"out": x})]:
        with pytest.raises(TypeError, match="floor"):
            function(*arguments, **options)


def test_options_go_to_both():
    largest = twin_of(np.max, FLOAT, options=True)
    assert largest(snp.asarray(M), axis=0).shape == (4,)
    assert largest(snp.asarray(M), axis=7) is None  # NumPy refuses
    assert twin_of(lambda x, *, axis: None, FLOAT, options=True)(snp.asarray(M), axis=0) is None


def test_traced_values_go_the_general_way():
    def seen(x):
        assert twin_of(np.square, FLOAT)(x) is None
        assert twin_of(np.add, FLOAT)(x, x) is None
        return snp.trunc(x)

    x = snp.asarray(X)
    st.jit(seen)(x)
    st.vmap(seen)(x)
    st.jvp(seen, (x,), (x,))


def test_what_numpy_refuses_goes_the_general_way():
    x, y = snp.asarray(X), snp.asarray(X[:3])
    assert twin_of(np.add, FLOAT)(x, y) is None
    with pytest.raises(ValueError, match="hypot: shapes"):
        snp.hypot(x, y)


def test_a_users_error_is_not_taken_for_a_refusal():
    def interrupted(x):
        raise_value_error()

    with pytest.raises(ValueError, match="a handler's"):
        twin_of(interrupted, FLOAT)(snp.asarray(X))


def raise_value_error():
    raise ValueError("a handler's own")


# That it changes nothing

SPECIAL = {
    "trunc": (X,),
    "modf": (X,),
    "frexp": (X,),
    "spacing": (X[2:],),
    "log2": (X,),
    "log10": (X,),
    "sinc": (X[:4],),
    "isnan": (X,),
    "isinf": (X,),
    "isreal": (X,),
    "iscomplex": (X,),
    "signbit": (X,),
    "nan_to_num": (X,),
    "bitwise_count": (K,),
    "fmax": (X, Y),
    "fmin": (X, Y),
    "copysign": (X, Y),
    "hypot": (X, Y),
    "gcd": (K, J),
    "lcm": (K, J),
    "ldexp": (X, J),
    "count_nonzero": (X,),
    "any": (X,),
    "all": (X,),
    "argmax": (X,),
    "argmin": (X[:5],),
    "array_equal": (X, X),
    "nanmax": (X,),
    "nanmin": (X,),
    "nansum": (X[:5],),
    "nanmean": (M,),
    "median": (X,),
    "nanmedian": (X,),
    "argsort": (X,),
    "unique_values": (X[:6],),
    "diff": (X,),
    "gradient": (X[:5],),
    "trapezoid": (X[:4],),
    "round": (X,),
    "ediff1d": (X,),
    "tril": (M,),
    "diag": (M,),
    "trace": (M,),
    "cross": (M[:, :3], M[:, 1:]),
    "matmul": (np.stack([M, M + 1]), M.T),
    "dot": (X, Y),
    "outer": (X, Y),
    "convolve": (M[0], M[1]),
    "correlate": (M[0], M[1]),
    "polyval": (M[0], X),
    "take": (X, J),
    "vstack": ((X, Y),),
    "column_stack": ((X, Y),),
}
SIZED = {"unique_values"}


def _alike(got, want):
    for g, w in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SPECIAL)
def test_the_same_as_compiled(name):
    args = st.tree.map(snp.asarray, SPECIAL[name])
    settings = {"size": 5} if name in SIZED else {}
    function = lambda *xs: getattr(snp, name)(*xs, **settings)
    _alike(getattr(snp, name)(*args), st.jit(function)(*args))


@pytest.mark.parametrize("decimals", [-40, -2, 0, 2, 40])
def test_rounded_to_decimals(decimals):
    x = np.concatenate([X, np.float32([1e38, -3e38, 1e-45, 0.125, 0.375, 250, 350, -0.005])])
    eager = np.asarray(snp.round(snp.asarray(x), decimals))
    jitted = np.asarray(st.jit(lambda v: snp.round(v, decimals))(snp.asarray(x)))
    normal = (np.abs(x) > 1e-37) | (x == 0) | np.isnan(x)  # less is zero when compiled
    np.testing.assert_array_equal(eager[normal], jitted[normal])
    seen = normal & (eager == eager)  # NaN has no sign to rely on
    np.testing.assert_array_equal(np.signbit(eager[seen]), np.signbit(jitted[seen]))


@pytest.mark.parametrize("given", ["x", "dx", "array", "integers"])
def test_trapezoids(given):
    places = snp.asarray(np.array([0, 1, 3, 7], np.float32))
    options = {"x": {"x": places}, "dx": {"dx": 2}, "array": {"dx": places[1:]}, "integers": {}}
    y = snp.asarray(M.astype(np.int32) if given == "integers" else M)
    function = lambda y: snp.trapezoid(y, axis=1, **options[given])
    _alike(function(y), st.jit(function)(y))


@pytest.mark.parametrize("mask", ["some", "none", "all", "strided"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (0, 2), (2, 3, 2)], ids=str)
def test_elements_where_a_mask_of_their_shape_holds(mask, shape):
    random = np.random.default_rng(0)
    x = random.standard_normal((*shape, 2)).astype(np.float32)[..., 0]  # strided
    holds = {"none": np.zeros(shape, bool), "all": np.ones(shape, bool)}.get(
        mask, random.random((2, *shape)).T[..., 0].T < 0.5
    )
    for given in (holds, snp.asarray(holds)):
        got = snp.asarray(x)[given]
        assert got.dtype == np.float32
        np.testing.assert_array_equal(np.asarray(got), x[holds])


@pytest.mark.parametrize("bounds", [(-1, 2), (0, 2.5), (-2, 0), (0.0, 0.0), (-0.0, 5)], ids=str)
def test_clip_between_numbers(bounds):
    for x in (X, K):
        if x is K and not all(isinstance(b, int) for b in bounds):
            continue
        eager = np.asarray(snp.clip(snp.asarray(x), *bounds))
        jitted = np.asarray(st.jit(lambda v: snp.clip(v, *bounds))(snp.asarray(x)))
        np.testing.assert_array_equal(eager, jitted)
        np.testing.assert_array_equal(np.signbit(eager), np.signbit(jitted))


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric", "constant"])
def test_padding(mode):
    widths = ((1, 2), (3, 0))
    eager = snp.pad(snp.asarray(M), widths, mode)
    _alike(eager, st.jit(lambda v: snp.pad(v, widths, mode))(snp.asarray(M)))
    np.testing.assert_array_equal(np.asarray(eager), np.pad(M, widths, mode))


@pytest.mark.parametrize("widths", [0, 2, (1, 0), ((0, 3), (2, 0))], ids=str)
@pytest.mark.parametrize("value", [0, -3, 1.5])
def test_padding_by_a_number(widths, value):
    for x in (M, M.astype(np.int32), M[:0]):
        if isinstance(value, float) and x.dtype == np.int32:
            continue
        eager = snp.pad(snp.asarray(x), widths, constant_values=value)
        assert eager.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(eager), np.pad(x, widths, constant_values=value))
    assert snp.pad(snp.asarray(X[0]), 3).shape == ()


@pytest.mark.parametrize("bits", [32, 64])
def test_bins_of_one_width_count_what_a_search_counts(bits):
    dtype, random = np.dtype(f"f{bits // 8}"), np.random.default_rng(0)
    edges = np.linspace(-1.1, 2.3, 38).astype(dtype)
    beside = [np.nextafter(edges, dtype.type(s * np.inf)) for s in (1, -1)]
    strange = [np.array([np.nan, np.inf, -np.inf], dtype)]
    x = np.concatenate([random.uniform(-2, 3, 100_000).astype(dtype), edges, *beside, *strange])
    place = np.searchsorted(edges, x, "right") - 1
    place[x == edges[-1]] = 36
    want = np.bincount(place[(place >= 0) & (place < 37)], minlength=37)
    with enable_x64(bits == 64):
        counts = snp.histogram(snp.asarray(x), snp.asarray(edges))[0]
        weighed = snp.histogram(snp.asarray(x), snp.asarray(edges), weights=snp.ones(x.size, dtype))
    np.testing.assert_array_equal(np.asarray(counts), want)
    np.testing.assert_array_equal(np.asarray(weighed[0]), want)


def test_uneven_bins_are_searched():
    x, edges = snp.asarray(M.ravel()), snp.asarray(np.array([-4, 0, 0.5, 6], np.float32))
    np.testing.assert_array_equal(
        np.asarray(snp.histogram(x, edges)[0]), np.histogram(M, np.asarray(edges))[0]
    )


@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max", "subtract"])
@pytest.mark.parametrize("at", [[1, 1, -1], [0, 99, 2], [3]], ids=str)
def test_updates_at_places(kind, at):
    x, index = snp.asarray(np.arange(5, dtype=np.float32)), snp.asarray(np.array(at, np.int32))
    values = snp.asarray(np.arange(2, 2 + len(at), dtype=np.float32))
    for given in (values, 3.0):
        update = lambda x, i, given=given: getattr(x.at[i], kind)(given)
        _alike(update(x, index), st.jit(update)(x, index))


def test_rows_are_set_at_places():
    at = snp.asarray(np.array([2, 0, 2], np.int32))
    update = lambda x, i: x.at[i].set(x[::-1] + 10)
    x = snp.asarray(M)
    _alike(update(x, at), st.jit(update)(x, at))


def test_stacks_of_singular_matrices():
    """NumPy raises where this gives infinities."""
    x = np.stack([np.eye(2), np.zeros((2, 2))]).astype(np.float32)
    assert not np.isfinite(np.asarray(snp.linalg.inv(snp.asarray(x)))[1]).any()
    assert np.asarray(snp.linalg.det(snp.asarray(x))).tolist() == [1, 0]
    lower = np.asarray(snp.linalg.cholesky(snp.asarray(x - 0.5 * x[0])))
    assert np.isnan(lower[1]).any()
    np.testing.assert_allclose(lower[0], np.sqrt(0.5) * np.eye(2), rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    ["any", "all", "argmax", "argmin", "count_nonzero", "nanargmax", "nanargmin", "sum", "max"],
)
@pytest.mark.parametrize("axis", [0, -1])
def test_a_scalar_has_no_axis_compiled_or_not(name, axis):
    f = lambda x: getattr(snp, name)(x, axis=axis)
    for g in (f, st.jit(f)):
        with pytest.raises(np.exceptions.AxisError, match="out of bounds for an array of 0"):
            g(snp.array(3.0))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8"])
def test_products_of_narrow_numbers_are_the_same_each_time(dtype):
    x = snp.asarray(np.random.default_rng(0).uniform(-2, 2, (2, 512)), dtype)
    first, *others = [np.asarray(x @ x.T) for _ in range(3)]
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_products_of_unlike_dtypes_are_promoted_each_time():
    x, y = snp.ones((2, 3), "float32"), snp.ones((3, 2), "int32")
    assert [(x @ y).dtype for _ in range(3)] == [np.float32] * 3
    assert [(y @ x).dtype for _ in range(3)] == [np.float32] * 3


def test_an_error_of_a_signal_handler_is_not_taken_for_numpys(monkeypatch):
    def handled(*_):  # as one raised by a handler, in a file that is not NumPy's
        raise OverflowError("of the user's")

    x = snp.ones(2)
    monkeypatch.setattr(twins, "quiet", SimpleNamespace(run=handled))
    with pytest.raises(OverflowError, match="of the user's"):
        twins.element_of(1.0, x.type)


@pytest.mark.parametrize(
    ("other", "is_taken"),
    [
        (snp.ones((2, 3)), True),
        (snp.ones(3), True),
        (snp.ones(3, snp.float16), False),
        (snp.asarray(2.0), False),  # weakly typed
        (snp.asarray(2), False),
        (2, True),
        (2.5, True),
        (2j, False),
        (None, False),
        (np.ones(3, np.float32), False),
    ],
    ids=repr,
)
def test_what_numpy_takes_beside_an_array(other, is_taken):
    first = snp.ones((2, 3)).type
    host = twins._host_beside(other, first)
    assert (host is not None) is is_taken
    if is_taken:
        assert host.dtype == np.float32 and np.all(host == np.asarray(other))
    with st.config(numpy_rank_promotion="raise"):
        differs = getattr(other, "shape", None) == (3,)
        assert (twins._host_beside(other, first) is not None) is (is_taken and not differs)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError, OverflowError, RuntimeError])
def test_an_error_that_is_none_of_numpys_passes_a_twin(count, error):
    def handled(*_):
        raise error("of the user's")

    one = eager(handled, FLOAT)(lambda x: "in general")
    two = eager(handled, FLOAT)(lambda x, y: "in general")
    x = snp.ones(2)
    with pytest.raises(error, match="of the user's"):
        (one if count == 1 else two)(*[x] * count)
    refused = eager(lambda x: np.reshape(x, 3), FLOAT)(lambda x: "in general")
    assert refused(x) == "in general"  # that is NumPy's


@pytest.mark.parametrize(
    "f",
    [
        snp.argmax,
        snp.argsort,
        snp.sort,
        snp.isfinite,
        snp.cumsum,
        lambda x: snp.searchsorted(x, 2.0),
        lambda x: snp.nonzero(x)[0],
        lambda x: snp.unique(x, return_index=True, return_counts=True)[1],
        lambda x: snp.histogram(x, 3)[0],
        lambda x: snp.isclose(x, 1.0),
        snp.count_nonzero,
        lambda x: snp.argpartition(x, 1),
        lambda x: snp.linalg.matrix_rank(x[None]),
    ],
)
@pytest.mark.parametrize("weak", [False, True])
def test_results_of_another_dtype_are_not_weak(f, weak):
    x = st.lax.broadcast(snp.asarray(2.0), (3,)) if weak else snp.array([3.0, 1.0, 2.0])
    assert x.weak_type is weak
    out = f(x)
    assert out.dtype == x.dtype or not out.weak_type


def test_numbers_are_kept(monkeypatch):
    monkeypatch.setattr(twins, "_numbers", {})
    x = snp.ones(3)
    first = twins.number_of(2.5, x.type)
    assert twins.number_of(2.5, x.type) is first
    assert twins.number_of(-0.0, x.type) is not twins.number_of(0.0, x.type)
    assert len(twins._numbers) == 3
