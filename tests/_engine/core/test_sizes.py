"""Sizes that vary: their normal form, their bounds, and what is refused."""

import operator
import pickle
import random

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import SizeError
from stretto._engine.core.sizes import (
    SizeVariable,
    alike,
    at_least,
    at_most,
    exceeds,
    fixed,
    greater,
    is_size,
    lesser,
    size_variable,
    slice_bounds,
    unnamed,
)
from tests.any_size import holds

N, M = size_variable("n"), size_variable("m", 0, 10)
(V,) = set(N.variables())
(W,) = set(M.variables())


def test_equal_sizes_have_one_form():
    assert 2 * N + 3 - N == N + 3 and hash(N + 3) == hash(3 + N)
    assert (N + 1) * (N - 1) == N**2 - 1 and (N**2 - 1) // (N - 1) == N + 1
    assert (4 * N + 6) // 2 == 2 * N + 3 and (N // 2) // 3 == N // 6
    assert N * M // N == M and (N * 128) // 128 == N and N - N == 0
    assert {N + 1: "here"}[1 + N] == "here" and pickle.loads(pickle.dumps(N * M)) == N * M
    assert (N - N).__class__ is int and is_size(N) and not is_size(3)
    assert divmod(N, 4) == (N // 4, N - 4 * (N // 4)) and (N + 0) is not None and +N == N


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (2 * N - 1, "2*n-1"),
        (3 - N, "-n+3"),
        (-2 * N, "-2*n"),
        (N * M, "m*n"),
        (N - 5 + N**2 * M, "m*n^2+n-5"),
        (N**3 - N**2, "n^3-n^2"),
        (N // 2 + M, "(n//2)+m"),
        ((N + 1) // 2, "((n+1)//2)"),
        (N // -2, "-((n+1)//2)"),
        (N % 2, "-2*(n//2)+n"),
        ((2 * (N // 3)) // 2, "(n//3)"),
        ((N // 3) ** 2 // 2, "((n//3)^2//2)"),
        (greater(N, 5), "max(n-5, 0)+5"),
        (greater(M, N), "max(m-n, 0)+n"),
        (greater(N, M), "max(m-n, 0)+n"),
        (lesser(N, M), "-max(m-n, 0)+m"),
    ],
)
def test_sizes_in_words(size, text):
    assert str(size) == text
    assert str(N * M) == str(M * N) == "m*n"


def test_the_greater_of_two_is_one_of_them_where_bounds_say_which():
    assert greater(N, 1) is N and greater(1, N) is N and lesser(1, N) == 1 == lesser(N, 1)
    assert greater(M, 10) == 10 == greater(10, M) and lesser(M, 10) == M
    assert greater(3, 4) == greater(4, 3) == 4 and lesser(3, 4) == lesser(4, 3) == 3
    assert abs(-N) == N == abs(N)


def test_the_least_and_the_greatest_for_estimates():
    assert (at_least(N), at_least(M), at_least(M - 5), at_least(4)) == (1, 0, 0, 4)
    assert (at_most(N), at_most(M + 2), at_most(4)) == (float("inf"), 12, 4)
    assert not exceeds(M, 0) and exceeds(M + 1, 0) and not exceeds(N, 1)
    assert exceeds(6, 5) and not exceeds(5, 5)


def draw(rng, depth=3):
    if not depth:
        return rng.choice([N, M, rng.randint(-3, 5)])
    one = draw(rng, depth - 1)
    kind = rng.randrange(6)
    if kind == 0:
        return one // rng.randint(1, 4)
    if kind == 1:
        return one % rng.randint(1, 4)
    other = draw(rng, depth - 1)
    if kind == 2:
        return greater(one, other)
    if kind == 3:
        return lesser(one, other)
    return one * other if kind == 4 else one - other


def value(size, n, m):
    return size.known({V: n, W: m}) if is_size(size) else size


def test_random_sizes_are_computed_and_bounded():
    rng = random.Random(0)
    for _ in range(400):
        before = rng.getstate()
        size = draw(rng)
        for n, m in ((1, 0), (2, 10), (7, 3), (40, 5)):
            here = random.Random()
            here.setstate(before)
            known = value(size, n, m)
            assert known == replayed(here, n, m)
            if is_size(size):
                least, most = size.bounds()
                assert least <= known <= most
                assert known <= size.bounds({V: 40, W: 10}.__getitem__)[1]


def replayed(rng, n, m, depth=3):
    """As ``draw``, with integers."""
    if not depth:
        return rng.choice([n, m, rng.randint(-3, 5)])
    one = replayed(rng, n, m, depth - 1)
    kind = rng.randrange(6)
    if kind == 0:
        return one // rng.randint(1, 4)
    if kind == 1:
        return one % rng.randint(1, 4)
    other = replayed(rng, n, m, depth - 1)
    if kind in (2, 3):
        return max(one, other) if kind == 2 else min(one, other)
    return one * other if kind == 4 else one - other


def test_bounds_decide():
    assert N > 0 and N >= 1 and bool(N) and N != 0 and N != -1 and M <= 10
    assert M != 11 and M != -1 and not M < 0 and not M > 10 and bool(M + 1) and bool(-M - 1)
    assert (N - N // 2).bounds() == (1, float("inf")) and (N % 3).bounds() == (0, 2)
    assert 0 // N == 0 and exceeds(N, 0) and not exceeds(N, 5) and not exceeds(3, 5)
    assert N - N // 2 > 0 and N // 2 < N


@pytest.mark.parametrize(
    "ask",
    [
        lambda: N == 5,
        lambda: N != 5,
        lambda: N < 3,
        lambda: M < 10,
        lambda: M >= 10,
        lambda: M <= 0,
        lambda: M == 0,
        lambda: M == 10,
        lambda: N > 1,
        lambda: N >= M,
        lambda: bool(M),
        lambda: N // M,
        lambda: 7 % N,
        lambda: 1 // N,
        lambda: -2 // N,
        lambda: (M - 10) // (N + 9),
        lambda: range(N),
        lambda: [1] * N,
        lambda: int(N),
        lambda: float(N),
    ],
)
def test_what_is_not_known_is_refused(ask):
    with pytest.raises(SizeError, match=r"known only while the program runs.*snp\.asarray"):
        ask()


def test_what_is_no_question_to_a_size():
    with pytest.raises(ZeroDivisionError, match="n // 0"):
        N // 0
    for ask in (lambda: N < "3", lambda: N >= None):
        with pytest.raises(TypeError, match=r"the size n cannot be compared with (str|NoneType)"):
            ask()


class Three:
    """An integer of another kind."""

    def __index__(self):
        return 3


def test_arithmetic_with_what_is_an_integer_to_python():
    for three in (Three(), True + True + True):
        assert N + three == three + N == N + 3 and N - three == N - 3 and three - N == 3 - N
        assert N * three == three * N == 3 * N and N**three == N**3
        assert N // three == N // 3 and N % three == N % 3
    assert N + True == N + 1 and -1 % N == N - 1 and 0 % N == 0


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_arithmetic_with_what_is_no_number(name):
    f = getattr(operator, name)
    for ask in (lambda: f(N, {3}), lambda: f(object(), N), lambda: f(N, None)):
        with pytest.raises(TypeError, match="unsupported operand"):
            ask()


def test_sizes_that_must_be_known_are_refused_where_they_are_not():
    assert fixed(4, "f", "the length", "give a number") == 4
    with pytest.raises(SizeError, match=r"^f: the length must be known .* n is known only"):
        fixed(N, "f", "the length", "give a number")


def test_sizes_are_compared_with_floats():
    assert N > 0.5 and N >= 1.0 and M < 10.5 and not M > 10.0 and not N < 1.0
    assert M <= 10.5 and N >= 0.5 and not N <= 0.5
    for below in (operator.lt, operator.le):
        for n in (N, M):
            assert below(n, float("inf")) and below(float("-inf"), n)
            assert not below(n, float("-inf")) and not below(float("inf"), n)
        with pytest.raises(ValueError, match="NaN"):
            below(N, float("nan"))
    for ask in (lambda: N < 2.5, lambda: M >= 9.5, lambda: M <= 9.5, lambda: N > 1.5):
        with pytest.raises(SizeError, match="known only while the program runs"):
            ask()


def test_a_variable_is_a_positive_size_unless_it_is_said():
    assert SizeVariable("n") == SizeVariable("n", 1, float("inf")) == V
    assert size_variable("n").bounds() == (1, float("inf"))


def test_slices_are_pythons():
    rng = random.Random(1)
    bounds = [None, *range(-9, 10)]
    for _ in range(500):
        part = slice(*(rng.choice(bounds) for _ in range(2)), rng.choice([None, 1, 2, 3, -1, -2]))
        start, count, step = slice_bounds(part, N)
        for n in (1, 2, 5, 8, 20):
            wanted = range(*part.indices(n))
            assert value(count, n, 0) == len(wanted) and step == wanted.step
            if wanted:
                assert value(start, n, 0) == wanted.start
            assert slice_bounds(part, n)[1] == len(wanted)


def test_slices_between_sizes():
    for bounds in ((M, None), (M, N), (None, M), (-M - 1, None)):
        start, count, step = slice_bounds(slice(*bounds), N)
        for n, m in ((1, 0), (3, 0), (7, 3), (4, 10)):
            wanted = range(*slice(*[value(b, n, m) for b in bounds]).indices(n))
            assert value(count, n, m) == len(wanted) and step == 1
            assert not wanted or value(start, n, m) == wanted.start
    assert slice_bounds(slice(Three(), None), N) == slice_bounds(slice(3, None), N)


def test_floats_make_values():
    x = np.ones(5, np.float32)
    f = lambda x: (
        x * (x.shape[0] * 0.5) + (2.5 - x.shape[0]) + (x.shape[0] - 0.5) + 1.5 * x.shape[0]
        + x.shape[0] / 4 + 3 / x.shape[0] + x.shape[0] ** 0.5 + (x.shape[0] + 0.25)
    )  # fmt: skip
    holds(f, [x], {(0, 0): 0})


def test_quotients_rounded_up_are_bounded():
    assert str(-(-N // 8)) == "((n+7)//8)"
    assert (8 * -(-N // 8)).bounds({V: 13}.__getitem__)[1] == 16
    assert (N * M).largest_sum({V: 7, W: 10}.__getitem__) == 70
    assert M.largest_sum({W: 0}.__getitem__) == 0
    assert (N + M).largest_sum({V: 7, W: 10}.__getitem__) == 17
    least, _ = (-((M + 2) // 3)).bounds()
    assert least <= -((10 + 2) // 3)
    assert -1 // N == -1 and -(-(N**2) // (N + 1)) == N and abs(N - M) is not None


def test_sizes_that_may_be_equal_are_refused_where_it_matters():
    x = np.ones((1, 2), np.float32)
    for f in (lambda x: snp.array_equal(x, np.ones((1, 2))), snp.squeeze):
        with pytest.raises(AssertionError, match="refused") as caught:
            holds(f, [x], {(0, 0): 0}, ("values",))
        assert "known only while the program runs" in str(caught.value.__cause__) or (
            "may have size 1" in str(caught.value.__cause__)
        )


@pytest.mark.parametrize(
    ("one", "other", "is_known"),
    [(2, 3, True), (2, 2, True), (N, N, True), (N, N + 1, True), (N, 0, True), (0, N, True),
     (N, 1, False), (1, N, False), (M, 0, False), (M, 10, False), (M, 11, True), (M, -1, True)],
)  # fmt: skip
def test_whether_sizes_are_alike(one, other, is_known):
    """N is at least 1, and M from 0 to 10."""
    if is_known:
        assert alike(one, other, "f") is (one == other)
        return
    with pytest.raises(SizeError, match=r"f: whether the sizes .* are equal is known only while"):
        alike(one, other, "f")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x.shape[0] == 3 else -x,
        lambda x: x if x.shape[0] > 3 else -x,
        lambda x: x if x.shape[0] - 3 else -x,
    ],
)
def test_what_a_function_asks_that_the_package_calls_is_asked_by_its_user(f):
    with pytest.raises(SizeError, match="depends on sizes that are known only while"):
        st.make_graph(f)(st.ShapeDtypeStruct((N,), np.float32))


def test_a_number_of_examples_without_its_name():
    class Named(int):
        pass

    assert type(unnamed(Named(3))) is int
    assert unnamed(Named(3)) == 3
    assert unnamed(2 * N) == 2 * N
