"""How operations pass masked cotangents and tangents on."""

import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.masked import (
    Condition,
    Masked,
    pass_back,
    push_forward,
    under,
    with_zeros,
)
from stretto._engine.core.interpreter import Linear, as_value
from stretto.numpy.normalized import logsumexp

X = np.array([4.0, 0.0, -1.0, np.nan], np.float32)
MASK = np.array([True, False, False, False])
ONE = np.array([1.0, 0.0, 0.0, 0.0], np.float32)
SLOPE = ONE / 4
"""The slopes of log at X where MASK holds."""


def log(x):
    return snp.where(MASK, snp.log(x), 0.0)


def masked_by_row(x):
    return snp.where(snp.array([True, False]), snp.sum(snp.log(x), axis=1), 0.0)


MOVES = {
    "negative": lambda y: -y,
    "difference": lambda y: 1.0 - y,
    "product with a number": lambda y: 3.0 * y,
    "quotient": lambda y: y / 2,
    "product with an array": lambda y: y * np.array([2.0, 0.0, np.inf, 1.0], np.float32),
    "quotient by an array": lambda y: y / np.array([2.0, 0.0, 0.0, 1.0], np.float32),
    "dtype": lambda y: y.astype(np.float16).astype(np.float32),
    "precision": lambda y: st.lax.reduce_precision(y, 8, 20),
    "reshape": lambda y: y.reshape(2, 2).reshape(-1),
    "new axes": lambda y: y[None, :, None].reshape(4),
    "transpose": lambda y: y.reshape(2, 2).T.T.reshape(4),
    "reverse": lambda y: y[::-1][::-1],
    "concatenate": lambda y: snp.concatenate([y, y])[:4],
    "slice": lambda y: snp.concatenate([y[:1], y[1:]]),
    "pad": lambda y: snp.pad(y[None], ((1, 0), (0, 0)))[1],
    "broadcast": lambda y: snp.broadcast_to(y, (3, 4)),
    "stack": lambda y: snp.stack([y, 2 * y]),
    "complex": lambda y: snp.real(snp.conj(y + 1j)),
    "imaginary": lambda y: snp.imag(y * 1j),
    "name": lambda y: st.checkpoint_name(y, "y"),
    "barrier": lambda y: st.lax.optimization_barrier((1.0, y))[1],
    "maximum": lambda y: snp.maximum(y, -10.0),
    "minimum": lambda y: snp.minimum(10.0, y),
    "clip": lambda y: snp.clip(y, -10.0, 10.0),
}


@pytest.mark.parametrize("name", MOVES)
def test_back_through_what_is_in_front_of_the_mask(name):
    """The operation lies between the mask and a function with infinite slopes."""
    move = MOVES[name]
    f = lambda x: snp.sum(snp.where(np.isfinite(X) & (X > 0), move(snp.log(x)), 0.0))
    g = lambda x: snp.sum(move(x) * np.where(MASK, 1.0, 0.0).astype(np.float32))
    slope = np.where(MASK, np.asarray(st.grad(g)(snp.log(snp.array([4.0, 1, 1, 1])))) / 4, 0)
    np.testing.assert_allclose(st.grad(f)(snp.array(X)), slope, rtol=1e-6)


SETTLED = {"pad", "barrier"}
"""A tangent gets zeros in front of these."""


@pytest.mark.parametrize("name", sorted(MOVES.keys() - SETTLED))
def test_forward_through_what_is_behind_the_mask(name):
    move = MOVES[name]
    f = lambda x: snp.log(move(snp.where(MASK, x, 0.0)))
    _, tangent = st.jvp(f, (snp.array(X),), (snp.ones(4),))
    bare, known = st.jvp(move, (snp.where(MASK, X, 1.0),), (snp.array(ONE),))
    wanted = snp.where(snp.nan_to_num(known) != 0, known / bare, 0.0)
    np.testing.assert_allclose(tangent, wanted, rtol=1e-3)  # "dtype" rounds to float16


def test_a_mask_of_rows_passes_sums_along_rows():
    x = snp.array([[1.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(st.grad(lambda x: masked_by_row(x).sum())(x), [[1, 0.5], [0, 0]])
    mean = lambda x: snp.log(snp.mean(x, axis=1))
    rows = lambda x: snp.where(snp.array([True, False]), mean(x), 0.0).sum()
    np.testing.assert_allclose(st.grad(rows)(x), [[1 / 3, 1 / 3], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["eagerly", "compiled"])
def test_a_mask_that_was_broadcast_is_one_of_rows(compiled):
    done = st.jit if compiled else lambda f: f
    x, rows = snp.array([[3.0, 4.0], [0.0, 0.0]]), snp.array([True, False])

    def unit(x, rows):
        return x / snp.sqrt(snp.sum(x * x, axis=1, keepdims=True))

    f = lambda x, rows: snp.sum(snp.where(rows[:, None], unit(x, rows), 0.0))
    slope = done(st.grad(f))(x, rows)
    np.testing.assert_allclose(slope, [[0.032, -0.024], [0, 0]], rtol=1e-5)
    scale = lambda s, rows: snp.sum(snp.where(rows, snp.ones((3, 1)) * snp.log(s), 0.0))
    np.testing.assert_allclose(done(st.grad(scale))(snp.array([2.0, 0.0]), rows), [1.5, 0])


def test_a_condition_that_is_one_number_passes_everything_linear():
    def f(w, x, ok):
        return snp.where(ok, snp.sum(snp.cumsum(snp.log(x) @ w)[snp.array([0, 0])]), 0.0)

    w, x = snp.ones((3, 2)), snp.zeros((2, 3)) - 1
    back = st.grad(f, (0, 1))
    for part in back(w, x, False):
        np.testing.assert_array_equal(part, np.zeros_like(part))
    assert np.isnan(back(w, x, True)[0]).all()


def test_what_mixes_elements_gets_zeros():
    f = lambda x: snp.sum(snp.where(MASK, x, 0.0) @ snp.ones((4, 2)))
    np.testing.assert_array_equal(st.grad(f)(snp.array(X)), 2 * ONE)
    g = lambda x: snp.sum(snp.where(MASK, x - snp.mean(snp.array(ONE) * x), 0.0))
    assert np.isfinite(st.grad(g)(snp.array([4.0, 0, -1, 2]))).all()


def test_a_zero_that_is_no_masks_is_an_ordinary_zero():
    """The slope of square(sqrt(x)) is 1 at 0, not 0; it is not known there, and stays NaN."""
    assert np.isnan(st.grad(lambda x: snp.square(snp.sqrt(x)))(0.0))
    assert np.isnan(st.grad(lambda x: snp.where(x >= 0, snp.square(snp.sqrt(x)), 0.0))(0.0))


def test_extrema_give_their_slope_to_what_they_take():
    up, down = snp.array([0.0, 0.5]), snp.array([0.0, -2.0])
    f = lambda x: snp.sum(snp.maximum(snp.log(x), -1.0) + snp.minimum(1 / x, 1.0))
    np.testing.assert_allclose(st.grad(f)(up), [0, 2])
    np.testing.assert_allclose(st.jvp(f, (up,), (snp.ones(2),))[1], 2)
    np.testing.assert_allclose(st.grad(lambda x: snp.sum(snp.maximum(x, x)))(down), [1, 1])
    np.testing.assert_allclose(st.grad(lambda x: snp.maximum(x, 2.0))(2.0), 0.5)
    assert st.grad(lambda x: st.nn.relu(snp.log(x)))(0.0) == 0
    assert st.grad(lambda x: snp.max(snp.log(snp.stack([x, x + 1]))))(0.0) == 1


def test_reductions_with_a_mask():
    x, mask = snp.array([1.0, 2.0, 0.0]), snp.array([True, True, False])
    for reduce in (snp.sum, snp.mean, snp.prod, snp.var, snp.std, logsumexp):
        taken = st.grad(lambda x, reduce=reduce: reduce(snp.log(x)))(x[:2])
        for f in (st.grad, lambda f: st.jit(st.grad(f))):
            got = f(lambda x, reduce=reduce: reduce(snp.log(x), where=mask))(x)
            np.testing.assert_allclose(got, [*taken, 0], rtol=1e-5, atol=1e-6)


def test_missing_data():
    data = snp.array([1.0, np.nan, 3.0])
    for f, wanted in [
        (snp.nansum, 4.0),
        (snp.nanmean, 2.0),
        (snp.nanvar, 4.0),
        (snp.nanprod, 12.0),
        (snp.nanmax, 3.0),
        (snp.nanstd, 1.0),
    ]:
        slope = st.grad(lambda w, f=f: f(w * data))(2.0)
        np.testing.assert_allclose(slope, wanted, rtol=1e-6, err_msg=f.__name__)


def test_rows_of_nothing():
    """Attention with a row that sees nothing, and a batch with an empty example."""
    mask = snp.array([[True, False], [False, False]])
    x = snp.array([[1.0, 2.0], [3.0, 4.0]])

    def attend(q):
        weights = st.nn.softmax(snp.where(mask, q @ x.T, -snp.inf), dim=-1)
        return snp.sum(snp.where(mask, weights, 0.0) @ q)

    np.testing.assert_allclose(st.grad(attend)(x), [[1, 1], [0, 0]])

    def spread(x):
        count = mask.sum(1)
        mean = snp.where(mask, x, 0.0).sum(1) / count
        var = snp.where(mask, (x - mean[:, None]) ** 2, 0.0).sum(1) / count
        return snp.where(count > 0, snp.sqrt(var + 1) + mean, 0.0).sum()

    np.testing.assert_allclose(st.grad(spread)(x), [[1, 0], [0, 0]])


# Where the conditions of a cotangent go when an operation passes it on: to axes of the other side,
# so that zeros are put in as late as can be. None: they cannot be told there, and are applied.

A = as_value(np.arange(1.0, 13.0, dtype=np.float32).reshape(3, 4))
CONDITIONS = {
    "rows": Condition(as_value(np.array([True, False, True])), True, (0,)),
    "columns": Condition(as_value(np.array([False, True, False, False])), False, (1,)),
    "elements": Condition(as_value(np.arange(12).reshape(3, 4) % 5 != 0), True, (0, 1)),
    "all": Condition(as_value(np.array(True)), True, ()),
}
PLACES = {
    "neg": (lambda x: -x, (0,), (1,), (0, 1)),
    "sin": (snp.sin, (0,), (1,), (0, 1)),
    "another dtype": (lambda x: x.astype(np.float16), (0,), (1,), (0, 1)),
    "transpose": (lambda x: x.T, (1,), (0,), (0, 1)),
    "reshape": (lambda x: x.reshape(2, 6), (0, 1), (0, 1), (0, 1)),
    "new axis": (lambda x: x[:, None], (0,), (2,), (0, 2)),
    "reversed rows": (lambda x: x[::-1], (0, 1), (1,), (0, 1)),
    "reversed columns": (lambda x: x[:, ::-1], (0,), (0, 1), (0, 1)),
    "some rows": (lambda x: x[1:], (0, 1), (1,), (0, 1)),
    "some columns": (lambda x: x[:, 1:3], (0,), (0, 1), (0, 1)),
    "repeated": (lambda x: snp.broadcast_to(x, (2, 3, 4)), (1,), (2,), (1, 2)),
    "sums of rows": (lambda x: x.sum(1), (0,), None, None),
    "sums of columns": (lambda x: x.sum(0), None, (0,), None),
    "sums along rows": (lambda x: snp.cumsum(x, 1), None, None, None),
    "maxima": (lambda x: x.max(1), None, None, None),
}


def primitive_of(f, *args):
    return st.make_graph(f)(*args).equations[-1].primitive


def under_conditions(value, conditions):
    """Return a cotangent with NaN where it does not count, and the one with zeros there."""
    zeroed = under(value, tuple(conditions), False).with_zeros()
    raw = snp.where(zeroed == 0, snp.nan, value)
    return under(raw, tuple(conditions), False), zeroed


@pytest.mark.parametrize(
    "names",
    [["rows"], ["columns"], ["elements"], ["all"], ["rows", "columns"], ["rows", "elements"]],
    ids=" and ".join,
)
@pytest.mark.parametrize("operation", PLACES)
def test_conditions_go_forward_with_the_elements(operation, names):
    f, rows, columns, elements = PLACES[operation]
    mixes = rows is columns is elements is None
    places = {"rows": rows, "columns": columns, "elements": elements, "all": None if mixes else ()}
    primitive = primitive_of(f, A)
    tangent, zeroed = under_conditions(A, [CONDITIONS[name] for name in names])
    out, moved = push_forward(primitive, [A], [tangent])
    settled = moved.__class__ is not Masked or moved.has_zeros
    np.testing.assert_array_equal(out, primitive(A))
    np.testing.assert_allclose(with_zeros(moved), primitive.jvp([A], [zeroed])[1], rtol=1e-6)
    expected = [places[name] for name in names if places[name] is not None]
    if not expected:
        assert moved.__class__ is not Masked
        return
    assert [c.dims for c in moved.conditions] == expected
    assert settled is (len(expected) < len(names))


BACK = {
    "neg": ((0,), (1,), (0, 1)),
    "transpose": ((1,), (0,), (0, 1)),
    "reshape": ((0, 1), (0, 1), (0, 1)),
    "new axis": ((0,), (1,), (0, 1)),
    "reversed rows": ((0, 1), (1,), (0, 1)),
    "reversed columns": ((0,), (0, 1), (0, 1)),
    "some rows": ((0, 1), (1,), (0, 1)),
    "some columns": ((0,), (0, 1), (0, 1)),
    "repeated": (None, (1,), None),
    "sums of rows": ((0,), (0,), (0,)),
    "sums of columns": ((1,), (1,), (1,)),
    "sums along rows": (None, None, None),
}


@pytest.mark.parametrize(
    "names",
    [["first"], ["last"], ["elements"], ["all"], ["first", "last"], ["elements", "all"]],
    ids=" and ".join,
)
@pytest.mark.parametrize("operation", BACK)
def test_conditions_go_back_with_the_elements(operation, names):
    f = PLACES[operation][0]
    primitive = primitive_of(f, A)
    shape = primitive(A).shape
    first, last, elements = BACK[operation]
    places = {"first": first, "last": last, "elements": elements, "all": ()}
    every = {
        "first": Condition(as_value(np.arange(shape[0]) % 2 == 0), True, (0,)),
        "last": Condition(as_value(np.arange(shape[-1]) % 2 == 0), False, (len(shape) - 1,)),
        "elements": Condition(
            as_value(np.arange(math.prod(shape)).reshape(shape) % 3 != 1),
            True,
            tuple(range(len(shape))),
        ),
        "all": CONDITIONS["all"],
    }
    ct, zeroed = under_conditions(snp.ones(shape), [every[name] for name in names])
    linear = Linear(A.type, None, False)
    rule = lambda value: primitive.transpose(value, linear)
    (back,) = pass_back(primitive, rule, ct, [linear], primitive.keeps_zeros)
    settled = back.__class__ is not Masked or back.has_zeros
    (known,) = rule(zeroed)
    np.testing.assert_array_equal(with_zeros(back), known)
    expected = [places[name] for name in names if places[name] is not None]
    if not expected:
        assert back.__class__ is not Masked
        return
    assert [c.dims for c in back.conditions] == expected
    lost = len(expected) < len(names)
    assert settled is (lost and primitive.keeps_zeros)


def test_tangents_that_are_put_together_count_where_they_come_from():
    tangent, zeroed = under_conditions(A, [CONDITIONS["rows"]])
    concatenated = primitive_of(lambda x, y, z: snp.concatenate([x, y, z], 1), A, A, A)
    out, moved = push_forward(concatenated, [A, A, A], [tangent, None, A])
    assert out.shape == (3, 12)
    (condition,) = moved.conditions
    assert condition.holds and condition.dims == (0, 1)
    expected = np.concatenate(
        [np.repeat([[1], [0], [1]], 4, 1), np.zeros((3, 4)), np.ones((3, 4))], 1
    )
    np.testing.assert_array_equal(condition.known(), expected.astype(bool))
    np.testing.assert_array_equal(with_zeros(moved), np.concatenate([zeroed, 0 * A, A], 1))


def test_tangents_of_both_operands():
    """A product counts where either tangent does; what both are under, the sum is under."""
    x, _ = under_conditions(A, [CONDITIONS["rows"], CONDITIONS["columns"]])
    y, _ = under_conditions(2 * A, [CONDITIONS["rows"]])
    product = primitive_of(lambda x, y: x * y, A, A)
    _, tangent = push_forward(product, [A, A], [x, y])
    assert tangent.conditions == (CONDITIONS["rows"],)
    rows, columns = np.array([[1], [0], [1]]), np.array([1, 0, 1, 1])
    square = np.asarray(A) ** 2
    np.testing.assert_array_equal(tangent.with_zeros(), rows * square * (columns + 2))
    _, tangent = push_forward(product, [A, A], [x, A])
    assert tangent.__class__ is not Masked
    np.testing.assert_array_equal(tangent, square * (1 + rows * columns))


def test_a_choice_between_tangents_is_under_what_both_are_under():
    chooses = primitive_of(snp.where, A > 6, A, A)
    x, zeroed = under_conditions(A, [CONDITIONS["rows"], CONDITIONS["columns"]])
    y, _ = under_conditions(2 * A, [CONDITIONS["rows"]])
    _, tangent = push_forward(chooses, [A > 6, A, A], [None, x, y])
    assert tangent.conditions == (CONDITIONS["rows"],) and not tangent.has_zeros
    rows = np.array([[1], [0], [1]])
    known = np.where(np.asarray(A) > 6, zeroed, 2 * rows * np.asarray(A))
    np.testing.assert_array_equal(tangent.with_zeros(), known)
    _, tangent = push_forward(chooses, [A > 6, A, A], [None, x, 2 * A])
    np.testing.assert_array_equal(tangent, np.where(np.asarray(A) > 6, zeroed, 2 * np.asarray(A)))
    _, tangent = push_forward(chooses, [A > 6, A, A], [None, None, x])
    assert [c.holds for c in tangent.conditions] == [True, False, False]


@pytest.mark.parametrize("f", [snp.isfinite, lambda x: x.astype(np.int32)])
def test_what_is_no_number_that_varies_has_no_tangent(f):
    tangent, _ = under_conditions(A, [CONDITIONS["rows"]])
    assert push_forward(primitive_of(f, A), [A], [tangent])[1] is None
