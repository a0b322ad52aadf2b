"""Integers among arguments, and what is said where something else is given."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn, random
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import (
    axis_of,
    check_fits,
    count,
    entries_of,
    integer,
    integers,
    pairs_of,
    shown,
    sizes_of,
)
from stretto._engine.core.sizes import size_variable
from stretto.compat.jax import initializers

X = snp.arange(6.0).reshape(2, 3)
HUGE = 10**400


def test_integers_are_taken_as_python_has_them():
    assert integer(np.int8(3), "f", "n") == 3 and integer(snp.array(3), "f", "n", 0) == 3
    assert integers([1, np.uint8(2)], "f", "n") == (1, 2)
    assert axis_of(-1, "f") == -1 and count(2, "f", "n", 1) == 2
    assert sizes_of((2, 0), "f") == (2, 0) and pairs_of([(1, 2)], "f", "p") == ((1, 2),)


def test_sizes_that_vary_are_integers_too():
    n = size_variable("n")
    assert integer(n, "f", "n") is n and axis_of(3, "f") == 3
    assert sizes_of((n, 2), "f") == (n, 2) == sizes_of([n, 2], "f")
    with pytest.raises(ValueError, match="n must be at least 2, got 1"):
        integer(1, "f", "n", 2)


def test_one_integer_or_several():
    for given in ((2, 3), [2, 3], range(2, 4), np.array([2, 3]), snp.array([2, 3])):
        assert tuple(map(int, entries_of(given))) == sizes_of(given, "f") == (2, 3)
    for given in (2, np.int64(2), np.array(2), snp.array(2)):
        assert sizes_of(given, "f") == (2,)
    assert entries_of("ab") == ("ab",) and entries_of(None) == (None,)
    assert entries_of({0: 1}) == ({0: 1},)
    assert sizes_of((snp.array(2), np.uint8(3)), "f") == (2, 3)
    assert sizes_of((), "f") == sizes_of(np.zeros(0, int), "f") == ()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: integer(1.5, "f", "n"), TypeError, r"f: n must be an integer, got the float 1.5"),
        (lambda: integer(None, "f", "n"), TypeError, "f: n must be an integer, got None"),
        (lambda: integer(X, "f", "n"), TypeError, r"f: n must be .* of type float32\[2,3\]"),
        (lambda: integer(-1, "f", "n", 0), ValueError, "f: n must be at least 0, got -1"),
        (lambda: integers(3, "f", "n"), TypeError, "f: n must be a sequence of integers, got 3"),
        (lambda: count(True, "f", "n", 1), TypeError, "f: n must be an integer, got the boolean"),
        (lambda: sizes_of((2, True), "f"), TypeError, "f: shape must be an integer, got the bool"),
        (lambda: sizes_of(np.ones(2), "f"), TypeError, "f: shape must be an integer, got an array"),
        (lambda: sizes_of("ab", "f"), TypeError, "f: shape must be an integer, got 'ab'"),
        (lambda: sizes_of(None, "f"), TypeError, "f: shape must be an integer, got None"),
        (lambda: sizes_of((2, -1), "f"), ValueError, r"f: sizes must not be negative, got \(2, -1"),
        (lambda: sizes_of((HUGE,), "f"), ValueError, "f: shape .* 1329 bits.* more elements than"),
        (lambda: pairs_of(3, "f", "p"), TypeError, r"f: p must be \(low, high\) pairs, got 3"),
        (lambda: pairs_of([(1, 2, 3)], "f", "p"), ValueError, r"f: p must be \(low, high\) pairs"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_long_integers_are_shown_by_their_length():
    assert shown(12) == "12" and shown((1, 2)) == "(1, 2)"
    assert shown(-HUGE) == "a negative integer of 1329 bits"
    assert shown(10**5000).endswith("bits")  # Python itself would refuse to write it out


def test_how_what_was_given_is_shown():
    assert shown((7,)) == "(7,)" and shown([]) == "()" and shown([1, (2,)]) == "(1, (2,))"
    assert shown(2**128 - 1) == str(2**128 - 1) and shown(2**128) == "an integer of 129 bits"
    for x, words in [("x" * 58, repr("x" * 58)), ("x" * 59, "a value of type str")]:
        with pytest.raises(TypeError, match=f"an integer, got {words}$"):
            integer(x, "f", "n")
    with pytest.raises(TypeError, match=r"got an array or scalar of dtype float64 and shape \(\)$"):
        integer(np.float64(1.5), "f", "n")


def test_bounds_of_integers():
    assert integer(3, "f", "n", 3) == count(3, "f", "n", 3) == 3
    assert integers((3, 4), "f", "n", 3) == (3, 4) and integers([], "f", "n", 3) == ()
    for call in (lambda: integer(2, "f", "n", 3), lambda: integers((3, 2), "f", "n", 3)):
        with pytest.raises(ValueError, match="f: n must be at least 3, got 2"):
            call()
    assert pairs_of([], "f", "p") == () and pairs_of(((0, -1), [2, 3]), "f", "p") == (
        (0, -1),
        (2, 3),
    )
    with pytest.raises(ValueError, match=r"must be \(low, high\) pairs, got \[1\]"):
        pairs_of([[1]], "f", "p")


def test_as_many_elements_as_can_be_addressed():
    most = 2**63 - 1
    for shape in ((most,), (7, most // 7), (0, most), (most, 1)):
        assert sizes_of(shape, "f") == shape
    for shape in ((most + 1,), (2**32, 2**31), (0, 2**32, 2**31), (-1, 2)):
        with pytest.raises(ValueError, match=r"more elements than memory|must not be negative"):
            sizes_of(shape, "f")


def test_what_has_entries_and_no_length_is_one_value():
    class Endless:
        def __getitem__(self, i):
            return i

    class Sized:
        def __len__(self):
            return 2

    for one in (Endless(), Sized(), "ab", b"ab", {0: 1}):
        assert entries_of(one) == (one,)


def test_traced_integers_keep_their_own_words():
    with pytest.raises(TracedValueError, match="static_argnums"):
        st.jit(snp.eye)(3)

    class Traced:
        def __iter__(self):
            raise TracedValueError("its own words")

    for read in (integers, pairs_of):
        with pytest.raises(TracedValueError, match=r"^its own words$"):
            read(Traced(), "f", "n")


FLOATS = {
    "roll": lambda: snp.roll(X, 1.5),
    "roll several": lambda: snp.roll(X, (1, 1.5), axis=(0, 1)),
    "roll array": lambda: snp.roll(X, snp.array(1.5)),
    "repeat": lambda: snp.repeat(X, 1.5),
    "repeat each": lambda: snp.repeat(X, snp.array([1.5, 2.0]), axis=0),
    "tile": lambda: snp.tile(X, 1.5),
    "diff": lambda: snp.diff(X, n=1.5),
    "rot90": lambda: snp.rot90(X, 1.5),
    "eye": lambda: snp.eye(2.5),
    "eye k": lambda: snp.eye(2, k=1.5),
    "tri": lambda: snp.tri(2, k=1.5),
    "tril": lambda: snp.tril(X, 1.5),
    "triu": lambda: snp.triu(X, 1.5),
    "linspace": lambda: snp.linspace(0, 1, 2.5),
    "split": lambda: snp.split(X, 1.5),
    "split at": lambda: snp.split(X, [1.5]),
    "reshape": lambda: snp.reshape(X, (2.0, 3)),
    "moveaxis": lambda: snp.moveaxis(X, 0.0, 1),
    "zeros": lambda: snp.zeros(2.5),
    "sum": lambda: snp.sum(X, axis=1.0),
    "concatenate": lambda: snp.concatenate([X, X], axis=0.5),
    "round": lambda: snp.round(X, 1.5),
    "fft": lambda: snp.fft.fft(X, n=2.0),
    "fftn": lambda: snp.fft.fftn(X, s=(2.0,)),
    "top_k": lambda: lax.top_k(X, 1.5),
    "broadcasted_iota": lambda: lax.iota(np.int32, 2.5),
    "one_hot": lambda: nn.one_hot(snp.array([0]), 2.5),
    "random.normal": lambda: random.normal(random.key(0), 2.5),
    "random.choice": lambda: random.choice(random.key(0), 2.5),
    "matrix_power": lambda: snp.linalg.matrix_power(snp.eye(2), 1.5),
    "bartlett": lambda: snp.bartlett(2.5),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_no_integers(name):
    with pytest.raises(TypeError, match="integer"):
        FLOATS[name]()


@pytest.mark.parametrize("transform", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [-1, 0])
def test_transforms_have_points(transform, n):
    with pytest.raises(ValueError, match="n must be at least 1, got"):
        getattr(snp.fft, transform)(X, n=n)


def test_booleans_are_neither_axes_nor_sizes():
    for call in (lambda: snp.sum(X, True), lambda: snp.zeros(True), lambda: snp.zeros((2, True))):
        with pytest.raises(TypeError, match="got the boolean True"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: X[HUGE],
        lambda: X[-HUGE],
        lambda: X.at[HUGE].set(1),
        lambda: X.at[HUGE].get(mode="fill"),
        lambda: st.jit(lambda x: x[10**20])(X),
        lambda: snp.zeros(HUGE),
        lambda: snp.broadcast_to(X, (HUGE, 2, 3)),
        lambda: snp.array(HUGE),
        lambda: snp.full(3, HUGE),
        lambda: snp.arange(3) + HUGE,
        lambda: X + HUGE,
        lambda: random.normal(random.key(0), HUGE),
    ],
)
def test_integers_beyond_any_array(call):
    with pytest.raises((IndexError, ValueError, OverflowError), match=r"integer of 1329 bits|1000"):
        call()


def test_a_slice_may_go_beyond():
    assert X[:HUGE].shape == (2, 3)


class Entries:
    """A sequence by its methods, as libraries' shapes are, of no class that Python knows."""

    def __init__(self, *entries):
        self.entries = entries

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, i):
        return self.entries[i]


SEVERAL = [Entries(0, 1), range(2), np.array([0, 1]), snp.array([0, 1]), [0, 1]]


@pytest.mark.parametrize("axes", SEVERAL, ids=lambda axes: type(axes).__name__)
def test_axes_are_any_sequence(axes):
    assert float(snp.sum(X, axis=axes)) == float(X.max(axes)) * 3 == 15
    assert snp.std(X, axis=axes).shape == snp.linalg.norm(X, axis=axes).shape == ()
    assert snp.flip(X, axes)[0, 0] == snp.roll(X, (1, 1), axes)[0, 0] == 5
    assert snp.moveaxis(X, axes, [1, 0]).shape == snp.transpose(X, [*axes][::-1]).shape == (3, 2)
    assert snp.expand_dims(X, axes).shape == (1, 1, 2, 3)
    assert snp.squeeze(X[:1, :1], axes).shape == ()
    assert snp.tensordot(X, X, (axes, axes)).shape == ()
    assert st.nn.softmax(X, axes).shape == (2, 3)


@pytest.mark.parametrize("shape", [Entries(2, 3), range(2, 4), np.array([2, 3]), snp.array([2, 3]),
                         [2, 3]], ids=lambda shape: type(shape).__name__)  # fmt: skip
def test_shapes_are_any_sequence(shape):
    key = st.random.key(0)
    for out in (
        snp.zeros(shape),
        snp.full(shape, 1.0),
        snp.zeros_like(X, shape=shape),
        X.ravel().reshape(shape),
        snp.reshape(X.ravel(), shape, "F"),
        snp.broadcast_to(1.0, shape),
        st.lax.full(shape, 1.0),
        st.lax.broadcasted_iota(int, shape, 0),
        st.random.normal(key, shape),
        initializers.zeros(key, shape),
        initializers.normal()(key, shape),
        initializers.constant(2.0)(key, shape),
        st.jit(lambda x: x.reshape(shape))(X.ravel()),
    ):
        assert out.shape == (2, 3)
    sizes = snp.broadcast_shapes(shape, (1, 3))
    assert sizes == (2, 3) and {type(n) for n in sizes} == {int}


def test_what_to_do_where_integers_do_not_fit():
    """Who named the dtype may name another; who did not may allow 64 bits."""
    wide, narrow = np.array([3, 1 << 40]), np.dtype(np.int32)
    with pytest.raises(OverflowError, match="enable_x64 = True, convert them to a float first"):
        check_fits(wide, narrow, "f", "x")
    with pytest.raises(OverflowError, match="ask for a wider dtype, or convert them first"):
        check_fits(wide, narrow, "f", "x", asked=True)
    with pytest.raises(OverflowError, match=r"x is the integer 1099511627776, int64, which does"):
        check_fits(wide[1], narrow, "f", "x")
    with st.config(integer_overflow="wrap"):
        check_fits(wide, narrow, "f", "x")
