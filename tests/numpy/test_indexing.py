"""Indexing: NumPy's results, modes out of bounds, masks, updates, derivatives, and messages."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32

# Any index, as NumPy has it

SIZES = some.integers(1, 4)


@some.composite
def _slices(draw, n):
    bound = some.none() | some.integers(-n - 2, n + 2) | some.integers(-n, n).map(np.int8)
    step = draw(some.sampled_from([None, 1, -1, 2, -2, 3]))
    return slice(draw(bound), draw(bound), step)


@some.composite
def indexed(draw):
    """A shape, and an index that fits it: any mixture that NumPy takes."""
    shape = tuple(draw(some.lists(SIZES, min_size=1, max_size=4)))
    batch = tuple(draw(some.lists(some.integers(1, 3), max_size=2)))
    used, ellipsis, parts = 0, False, []
    for _ in range(draw(some.integers(0, 6))):
        kind = draw(some.sampled_from(["int", "slice", "new", "ellipsis", "mask", "array", "bool"]))
        if kind == "new":
            parts.append(None)
        elif kind == "ellipsis" and not ellipsis:
            ellipsis = True
            used += draw(some.integers(0, len(shape) - used))
            parts.append(Ellipsis)
        elif kind == "bool" and not batch:
            parts.append(draw(some.sampled_from([bool, np.bool_, np.array]))(draw(some.booleans())))
        elif used < len(shape) and kind in ("int", "slice", "mask", "array"):
            n = shape[used]
            if kind == "int":
                whole = draw(some.sampled_from([int, np.int8, np.int64, np.array, np.uint8]))
                parts.append(whole(draw(some.integers(-n * (whole is not np.uint8), n - 1))))
            elif kind == "slice":
                parts.append(draw(_slices(n)))
            elif kind == "mask":
                wanted = batch[-1] if batch else 1
                chosen = draw(some.permutations(range(n)))[:wanted]
                mask = np.isin(np.arange(n), chosen)
                parts.append(mask.tolist() if draw(some.booleans()) else mask)
            else:
                places = tuple(draw(some.sampled_from([1, m])) for m in batch)
                size = int(np.prod(places))
                dtype = draw(some.sampled_from(["int32", "int64", "int8", "uint8", "uint64"]))
                least = 0 if dtype[0] == "u" else -n
                flat = draw(some.lists(some.integers(least, n - 1), min_size=size, max_size=size))
                at = np.array(flat, dtype).reshape(places)
                parts.append(at.tolist() if draw(some.booleans()) and at.ndim else at)
            used += 1
    if ellipsis:
        parts.extend([slice(None)] * (len(shape) - used))
    return shape, tuple(parts)


def _numbers(shape):
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def _numpys(x, index):
    """NumPy's result, or the class of its error."""
    try:
        return x[index]
    except IndexError:
        return IndexError


@settings(max_examples=400)
@given(indexed())
def test_reads_are_numpys(case):
    shape, index = case
    x = _numbers(shape)
    want = _numpys(x, index)
    traced = lambda x: x[index]
    if want is IndexError:
        with pytest.raises(IndexError):
            snp.array(x)[index]
        with pytest.raises(IndexError):
            st.eval_shape(traced, x)
        return
    for got in (
        snp.array(x)[index],
        snp.array(x).at[index].get(mode="fill"),
        st.vmap(traced)(np.stack([x, x]))[1],
    ):
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)
    assert st.eval_shape(traced, x).shape == want.shape


_UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "divide": np.divide,
}


@settings(max_examples=400)
@given(indexed(), some.sampled_from(["set", *_UFUNCS]), some.booleans())
def test_updates_are_numpys(case, kind, scalar):
    shape, index = case
    x = _numbers(shape)
    place = _numpys(np.arange(x.size).reshape(shape), index)
    if place is IndexError:
        return
    values = np.full((), 2, np.float32) if scalar else 1 + np.arange(place.size) % 3
    values = values.astype(np.float32).reshape(() if scalar else place.shape)
    want = x.copy().reshape(-1)
    for at, value in zip(
        np.ravel(place), np.ravel(np.broadcast_to(values, place.shape)), strict=True
    ):
        want[at] = value if kind == "set" else _UFUNCS[kind](want[at], value)
    want = want.reshape(shape)
    update = lambda x, v: getattr(x.at[index], kind)(v)
    for got in (update(snp.array(x), values), st.vmap(update)(x[None], values[None])[0]):
        assert got.shape == want.shape
        # Repeated division is by the product of the divisors: other roundings.
        np.testing.assert_allclose(got, want, rtol=3e-6 if kind == "divide" else 0)


INDICES = [
    1,
    (slice(None), -1),
    (slice(1, 3), slice(None, None, -2)),
    (None, ..., 0),
    np.array([0, 2, 2]),
    (np.array([[0], [3]]), slice(1, 4), np.array([0, 2])),
    (slice(None), np.array([0, 9, -7])),
    (np.array([1, 0]), None, ..., np.array([2, 2])),
    (0, np.array([True, False, True, True, False])),
    np.arange(60).reshape(4, 5, 3) % 7 == 0,
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_compiled_is_eager(index):
    x = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    read = lambda x: (x[index], x.at[index].get(mode="fill"))
    for got, want in zip(st.jit(read)(x), read(snp.array(x)), strict=True):
        np.testing.assert_array_equal(got, want)
    for kind in ("set", "add", "multiply", "divide", "power", "max"):
        write = lambda x, kind=kind: getattr(x.at[index], kind)(2.0)
        np.testing.assert_allclose(st.jit(write)(x), write(snp.array(x)), rtol=1e-6)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_derivatives_of_reads(index):
    laws.check(lambda x: x[index], [f32(4, 5, 3)], second=False)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("kind", ["set", "add"])
def test_derivatives_of_updates(kind, index):
    shape = snp.zeros((4, 5, 3))[index].shape
    update = lambda x, v: getattr(x.at[index], kind)(v)
    laws.check(update, [(f32(4, 5, 3), f32(*shape))], second=False)


def test_derivatives_at_a_traced_index():
    i = np.array([2, 0, 5, -1], np.int32)
    laws.check(lambda x, i: x[i] * x[i], [(f32(4, 3), i)])
    laws.check(lambda x, i: x[1, i], [(f32(3, 4), i)])
    for kind in ("set", "add", "min"):
        update = lambda x, i, v, kind=kind: getattr(x.at[i], kind)(v)
        laws.check(update, [(f32(4, 3), i, f32(4, 3))])
    met = np.array([2, 0, 2, 9], np.int32)
    cases = [("multiply", i, True), ("divide", i, True), ("power", i, True), ("divide", met, False)]
    for kind, places, unique in cases:
        update = lambda x, i, v, kind=kind, unique=unique: getattr(x.at[i], kind)(
            v, unique_indices=unique
        )
        laws.check(update, [(f32(4, 3).within(1, 2), places, f32(4, 3).within(1, 2))])
    once = lambda x, i: x.at[i].apply(snp.sin, unique_indices=True)
    laws.check(once, [(f32(4, 3), np.array([2, 0, 9], np.int32))])


def test_where_two_updates_meet_the_last_has_the_derivative():
    i = np.array([1, 1, 0], np.int32)
    total = lambda v, i: (snp.zeros(3).at[i].set(v) * snp.array([1.0, 10.0, 100.0])).sum()
    for fun in (total, st.jit(total)):
        np.testing.assert_array_equal(st.grad(fun)(np.ones(3, np.float32), i), [0, 10, 1])


# Out of bounds


def test_raise_names_index_axis_and_size():
    x = snp.zeros((2, 3))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 1 with size 3"):
        x.at[0, np.array([0, 7])].get(mode="raise")
    with pytest.raises(IndexError, match="index -3 is out of bounds for axis 0 with size 2"):
        x.at[-3].set(1.0, mode="raise")
    np.testing.assert_array_equal(x.at[1].get(mode="raise"), [0, 0, 0])
    with pytest.raises(st.errors.TracedValueError, match='mode="raise" needs to know the index'):
        st.jit(lambda i: x.at[i].get(mode="raise"))(np.array([1], np.int32))


def test_nothing_to_read():
    empty = snp.zeros((0, 3))
    with pytest.raises(IndexError, match=r"reads from float32\[0,3\], which has no elements"):
        empty[0]
    assert empty[np.zeros((0,), np.int32)].shape == (0, 3)
    assert np.isnan(np.asarray(empty.at[1].get(mode="fill"))).all()
    assert empty.at[0].set(1.0).shape == (0, 3)


def test_unsigned_and_narrow_indices():
    x = np.arange(300, dtype=np.float32)
    for dtype in (np.int8, np.uint8, np.uint16, np.uint32):
        at = np.array([3, 120], dtype)
        np.testing.assert_array_equal(snp.array(x)[at], [3, 120])
        np.testing.assert_array_equal(st.jit(lambda x, i: x[i])(x, at), [3, 120])
    at = np.array([-1, -128], np.int8)
    np.testing.assert_array_equal(st.jit(lambda x, i: x[i])(x, at), [299, 172])


# Masks


def test_concrete_masks_select_even_while_tracing():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    mask = x > 2
    np.testing.assert_array_equal(snp.array(x)[mask], [3, 4, 5])
    np.testing.assert_array_equal(snp.array(x)[snp.array(mask)], [3, 4, 5])
    np.testing.assert_array_equal(st.jit(lambda x: x[snp.array(mask)])(x), [3, 4, 5])
    np.testing.assert_array_equal(st.grad(lambda x: x[x > 2].sum())(x), mask)


def test_traced_masks_are_refused_in_words():
    x = np.arange(3, dtype=np.float32)
    for fun in (lambda x: x[x > 1], lambda x: x.at[x > 1].set(np.ones(2, np.float32))):
        with pytest.raises(st.errors.BooleanIndexError, match=r"snp\.where"):
            st.jit(fun)(x)


def test_one_value_for_each_place_of_a_mask():
    x = np.arange(4, dtype=np.float32)
    got = snp.array(x).at[x > 1].set(np.array([7, 8], np.float32))
    np.testing.assert_array_equal(got, [0, 1, 7, 8])


def test_masks_have_derivatives():
    mask = np.array([[True, False, True], [False, False, True]])
    laws.check(lambda x, v: x.at[mask].multiply(v), [(f32(2, 3), f32())])
    laws.check(lambda x, v: x.at[mask[:, 0]].add(v), [(f32(2, 3), f32(3))])


# What updates do to values


def test_values_take_the_dtype_of_the_array():
    assert snp.zeros(2).at[0].set(3).dtype == np.float32
    np.testing.assert_array_equal(snp.array([1, 2]).at[0].set(np.float32(2.7)), [2, 2])
    assert snp.array([4, 6]).at[0].divide(2).dtype == np.float32
    with pytest.raises(TypeError, match=r"complex values cannot go into float32\[2\]"):
        snp.zeros(2).at[0].set(1j)
    with pytest.raises(OverflowError, match=r"the Python integer 300 does not fit in int8\[2\]"):
        snp.array(np.zeros(2, np.int8)).at[0].set(300)


def test_the_array_itself_stays():
    x = snp.zeros(3)
    for index in (1, slice(0, 2), np.array([0, 0])):
        x.at[index].set(1.0)
        x.at[index].add(1.0)
    np.testing.assert_array_equal(x, [0, 0, 0])


def test_a_traced_mask_takes_values_of_the_arrays_shape():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    whole, rows, columns = x % 3 == 0, x[:, 0] > 3, x[0] % 2 == 1
    cases = [
        (lambda x, m: x.at[m].set(-x), whole, np.where(whole, -x, x)),
        (lambda x, m: x.at[m].add(x), rows, np.where(rows[:, None], 2 * x, x)),
        (lambda x, m: x.at[m].set(x[:, :1]), rows, np.where(rows[:, None], x[:, :1], x)),
        (lambda x, m: x.at[:, m].multiply(x), columns, np.where(columns, x * x, x)),
        (lambda x, m: x.at[..., m].set(x[:, :1]), columns, np.where(columns, x[:, :1], x)),
        (lambda x, m: x.at[m, :].set(5), rows, np.where(rows[:, None], 5, x)),
    ]
    for fun, mask, want in cases:
        np.testing.assert_array_equal(fun(snp.array(x), mask), want)
        np.testing.assert_array_equal(st.jit(fun)(x, mask), want)
    with pytest.raises(st.errors.BooleanIndexError, match="must be a scalar, have the shape"):
        st.jit(lambda x, m: x.at[m].set(x[0]))(x, whole)


def test_item_assignment_is_refused():
    x = snp.zeros((2, 3))
    with pytest.raises(TypeError, match=r"immutable(.|\n)*\.at\["):
        x[0, 1:] = 5
    with pytest.raises(TypeError, match=re.escape("x = x.at[0, 1:].set(y)")):
        x[0, 1:] = 5


# Programs


def test_static_indices_are_slices_not_gathers():
    program = str(st.make_graph(lambda x: x[1, ::-2, None])(np.zeros((3, 4), np.float32)))
    assert "gather" not in program
    assert "slice" in program


def test_one_array_is_one_gather():
    program = str(st.make_graph(lambda x, i: x[:, i])(np.zeros((3, 4), np.float32), np.arange(2)))
    assert program.count("gather") == 1


# Messages


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        ((0, 1, 2), IndexError, r"too many indices for float32\[2,3\]: x\[0, 1, 2\] names 3 axes"),
        ((..., ...), IndexError, "one ellipsis"),
        ([0, 1], TypeError, r"wrap it as snp\.array\(\[0, 1\]\)"),
        (range(2), TypeError, r"wrap it as snp\.array\(range\(0, 2\)\)"),
        ((0, [1.5]), IndexError, "got an array of float32"),
        ((0, [[1], [1, 2]]), ValueError, "an index: the sequences differ in length"),
        ((0, ["a"]), TypeError, "an index: an element must be an array or a number"),
        (np.array(["a"]), IndexError, "got an array of <U1"),
        ((0, (1, 2, 0), (0, 1)), IndexError, r"x\[0, \(1, 2, 0\), \(0, 1\)\], x of type|too many"),
        (1.5, IndexError, "got float"),
        (np.array([1.5]), IndexError, "got an array of float64"),
        (np.array([True]), IndexError, "axis 0 has size 2, the mask 1"),
        ((np.arange(2), np.arange(3)), IndexError, r"their shapes are \(2,\) and \(3,\)"),
        (slice(0, 1.5), TypeError, "bounds of a slice must be integers"),
        (slice(None, None, 0), ValueError, "step of a slice cannot be zero"),
        ("a", IndexError, "got str"),
    ],
    ids=str,
)
def test_messages(index, error, words):
    with pytest.raises(error, match=words):
        snp.zeros((2, 3))[index]
    with pytest.raises(error, match=words):
        snp.zeros((2, 3)).at[index].set(1.0)


def test_values_that_do_not_fit():
    with pytest.raises(ValueError, match=r"do not broadcast to the shape \(3,\) that the index"):
        snp.zeros((2, 3)).at[0].set(np.ones(2, np.float32))
    with pytest.raises(TypeError, match=r"must be an array or a number; got a list"):
        snp.zeros((2, 3)).at[0].set([1, 2, 3])


def test_traced_slices_name_the_way_out():
    with pytest.raises(st.errors.TracedValueError, match=r"lax\.dynamic_slice"):
        st.jit(lambda x, n: x[:n])(np.zeros(3, np.float32), 2)


ALIKE = [
    1,
    True,
    (1,),
    slice(1),
    slice(1, None),
    (slice(1),),
    (1, 1),
    (1, True),
    None,
    (None,),
    ...,
]
ALIKE += [
    (..., 1),
    slice(None, None, -1),
    (None, 1),
    slice(0, 2, 1),
    (0, 2, 1),
    (True,),
    np.int32(1),
]


@pytest.mark.parametrize("shape", [(2, 3, 2), (3, 3, 2)])
def test_static_indices_that_look_alike(shape):
    """What is kept of an index, by shape, is that of no other one."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for _ in range(2):
        for index in ALIKE:
            got = st.vmap(lambda x, i=index: x[i])(x[None])[0]
            np.testing.assert_array_equal(got, x[index])


CLAMPED = [(5, 1), (-7, 0), ((0, 9), (0, 2)), (slice(1, 9), slice(1, 2))]


@pytest.mark.parametrize("index, clamped", CLAMPED)
def test_static_indices_out_of_bounds_are_clamped_each_time(index, clamped):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for _ in range(2):
        np.testing.assert_array_equal(st.vmap(lambda x: x[index])(x[None])[0], x[clamped])
    fill = st.vmap(lambda x: x.at[index].get(mode="fill", fill_value=-1.0))(x[None])[0]
    np.testing.assert_array_equal(fill, x[clamped] if isinstance(index, slice) else -1)


def test_static_indices_are_checked_where_that_is_asked_for():
    x = snp.ones((2, 3))
    jitted = st.jit(lambda x: x[5])
    assert x[5].shape == jitted(x).shape == (3,)
    with st.config(check_static_indices=True):
        reads = [lambda x: x[5], lambda x: x[-3], lambda x: x[0, 9], lambda x: x.at[5].get()]
        for read in [*reads, *map(st.jit, reads), jitted, lambda x: x[np.int32(5)]]:
            with pytest.raises(IndexError, match="out of bounds for axis"):
                read(x)
        # What is asked for, traced, written, or several places, is as ever.
        assert x.at[5].get(mode="clip").shape == (3,)
        assert st.jit(lambda x, i: x[i])(x, 5).shape == (3,)
        assert x[1].shape == (3,) and x[5:].shape == (0, 3)
        assert (x.at[5].set(2) == x).all() and x[snp.array([5])].shape == (1, 3)
    assert x[5].shape == jitted(x).shape == (3,)
