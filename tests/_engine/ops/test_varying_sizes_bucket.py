"""What rules for sizes that vary work with."""

import dataclasses

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.sizes import greater, size_variable
from stretto._engine.core.types import array_type
from stretto._engine.ops.convolution.general import ConvDimensionNumbers
from stretto._engine.ops.shape import Slice
from stretto._engine.ops.varying_sizes import Bucket, varying

N = size_variable("n")
(V,) = N.variables()
F32 = np.dtype(np.float32)


def bucket(n=3, most=5):
    return Bucket({V: most}, {V: snp.asarray(n, "int32")})


def test_bounds_and_sizes():
    at = bucket()
    size = greater(2 * N - 7, 0) + N // 2 - 1
    assert at.bound(size) == 3 + 2 - 1 and int(at.size(size)) == 0 + 1 - 1
    assert at.bound(7) == int(at.size(7)) == 7 and at.size(N) is at.size(N)
    assert at.shape((N, 4, N - 1)) == (5, 4, 4)
    assert varying(array_type((N, 4, N - 1), F32)) == [0, 2]
    assert at.carrier(array_type((N,), F32)) == array_type((5,), F32)


def test_parameters_of_fixed_sizes():
    at = bucket()
    assert at.static(Slice((0,), (N - 1,), (1,))) == Slice((0,), (4,), (1,))
    plain = Slice((0,), (4,), (1,))
    assert at.static(plain) is plain
    numbers = ConvDimensionNumbers((0, 1), (1, 0), (0, 1))
    assert at.static(numbers) is numbers and at.static([N, (N, "x")]) == [5, (5, "x")]


def test_padding_is_found_and_replaced():
    at, x = bucket(), snp.arange(20.0).reshape(5, 4)
    type = array_type((N, 4), F32)
    np.testing.assert_array_equal(at.inside(type.shape)[:, 0], [1, 1, 1, 0, 0])
    np.testing.assert_array_equal(at.filled(x, type, -1)[3:], np.full((2, 4), -1))
    np.testing.assert_array_equal(at.filled(x, type, -1)[:3], x[:3])
    assert at.filled(x, type, -1, (1,)) is x and at.inside((3, 4)) is None
    # All that fills an array of this shape shares one mask.
    assert at.inside(type.shape) is at.inside(type.shape, (0,)) is not at.inside((N, 5))


def test_windows_at_starts_that_are_values():
    at, x = bucket(), snp.arange(5.0)
    np.testing.assert_array_equal(at.cut(x, [snp.asarray(3)], (2,)), [3, 4])
    assert at.cut(x, [snp.asarray(4)], (3,))[0] == 4
    np.testing.assert_array_equal(at.put(x, snp.ones(2), [snp.asarray(4)]), [0, 1, 2, 3, 1])
    np.testing.assert_array_equal(at.put(x, snp.ones(2), [1]), [0, 1, 1, 3, 4])
    type = array_type((N + 2,), F32)
    assert at.fit(x, type).shape == (7,) and at.fit(snp.arange(9.0), type).shape == (7,)


def test_places_in_arrays_of_the_true_size():
    at = bucket()
    np.testing.assert_array_equal(at.rank((2, N))[:, :3], [[0, 1, 2], [3, 4, 5]])
    x = snp.arange(10.0).reshape(2, 5)
    np.testing.assert_array_equal(at.taken(x, (2, N), (2 * N,))[:6], [0, 1, 2, 5, 6, 7])


def test_what_was_done_to_an_array_is_noted():
    x, start = snp.arange(5.0), snp.asarray(1)
    calls = {
        "replaced": lambda at: at.filled(x, array_type((N,), F32), -1),
        "moved": lambda at: at.cut(x, [start], (2,)),
        "one by one": lambda at: at.taken(x, (N,), (N,)),
    }
    for what, call in calls.items():
        at = bucket()
        call(at)
        assert at.done == {what}
    at = bucket()
    at.put(x, snp.ones(2), [start])
    assert at.done == {"moved"}
    at = bucket()
    at.along(x, 0, snp.asarray([1]))
    assert at.done == {"one by one"}
    at = bucket()
    at.cut(x, [1], (2,)), at.put(x, snp.ones(2), [1]), at.fit(x, array_type((N + 2,), F32))
    at.inside((3, 4)), at.filled(x, array_type((5,), F32), 0)
    assert at.done == set()


def test_arrays_are_cut_and_grown_to_fit():
    at, x = bucket(), snp.arange(12.0).reshape(3, 4)
    wanted = {(3, 4): x, (2, 4): x[:2], (N, 4): snp.pad(x, [(0, 2), (0, 0)])}
    wanted[N, 2] = snp.pad(x[:, :2], [(0, 2), (0, 0)])
    for shape, want in wanted.items():
        np.testing.assert_array_equal(at.fit(x, array_type(shape, F32)), want)
    assert at.fit(x, array_type((3, 4), F32)) is x


def test_padding_that_counts_as_zero_is_not_replaced_again():
    at, x = bucket(), snp.ones((5, 5))
    type = array_type((N, N), F32)
    at.zeros[id(x)] = x, (0,)
    assert at.filled(x, type, 0, (0,)) is x
    columns = at.filled(x, type, 0, (1,))
    np.testing.assert_array_equal(columns, [[1, 1, 1, 0, 0]] * 5)
    np.testing.assert_array_equal(at.filled(x, type, 0), columns)
    np.testing.assert_array_equal(at.filled(x, type, 1), x)
    np.testing.assert_array_equal(at.filled(x, type, -1, (0,))[3:], -np.ones((2, 5)))
    at.zeros[id(x)] = x, (0, 1)
    assert at.filled(x, type, 0) is x
    plain = snp.ones((5, 5))
    whole = np.zeros((5, 5))
    whole[:3, :3] = 1
    np.testing.assert_array_equal(at.filled(plain, type, 0, (1,)), whole)


@pytest.mark.parametrize(("n", "want"), [(0, -4), (3, -2), (5, -1), (7, 0), (9, 1)])
def test_sizes_are_divided_downwards(n, want):
    at = bucket(n, 9)
    assert int(at.exact((N - 7) // 2)) == want
    assert at.bound(N - 12) == 0


@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        (N, "int32"),
        (N - 1, "int32"),
        (N + 1, "int64"),
        (2 * N, "int64"),
        ((N + 1) // 2, "int32"),
        ((4 * N) // 8, "int32"),
        (-N, "int32"),
        (-N - 1, "int64"),
    ],
)
def test_sizes_that_32_bits_may_not_hold_have_64(size, dtype):
    """What is added up on the way does not wrap either."""
    most = 2**31 - 1
    with st.enable_x64():
        at = Bucket({V: most}, {V: snp.asarray(most, "int32")})
        assert at.exact(size).dtype == dtype
        assert int(at.exact(size)) == size.known({V: most})
        if dtype == "int64":
            with pytest.raises(st.errors.SizeError, match="int32, in which sizes are counted and"):
                at.size(size)


def test_sizes_that_64_bits_may_not_hold_are_refused():
    at = Bucket({V: 2**31 - 1}, {V: snp.asarray(3, "int32")})
    with st.enable_x64():
        assert int(at.exact(N * N)) == 9
        with pytest.raises(st.errors.SizeError, match="int64 has integers up to 9223372036854775"):
            at.exact(N * N * N)
    assert at.exact(7).dtype == "int32" and int(at.exact(-3)) == -3


def test_as_much_as_64_bits_hold_is_counted():
    at = Bucket({V: 2}, {V: snp.asarray(2, "int32")})
    with st.enable_x64():
        assert int(at.exact((2**62 - 512) * N)) == 2**63 - 1024  # the greatest of those of floats
        with pytest.raises(st.errors.SizeError, match="int64 has integers up to 9223372036854775"):
            at.exact(2**62 * N)


def test_the_greatest_of_the_sizes_that_were_asked_for():
    at = bucket()
    for size in (N, 2 * N, N - 1):
        at.size(size)
    assert at.greatest() == (2 * N, 10)


@pytest.mark.parametrize("n", [0, 1, 3, 5])
@pytest.mark.parametrize(
    "config", [(2, 1, 0), (N, 1, 0), (N - 3, 2, 1), (2 - N, 1, 0), (1, 0, N), (N, N, N), (-1, 0, 2)]
)
def test_padding_of_sizes_that_vary(n, config):
    """Elements in front, behind and between, as by numbers."""
    at, x = bucket(n, 5), snp.arange(1.0, 6.0)
    fixed = [c if isinstance(c, int) else int(at.size(c)) for c in config]
    low, high, inner = fixed
    length = low + n + max(n - 1, 0) * inner + high
    if length < 0:
        return
    want = lax.pad(x[:n], 0.0, [fixed])
    inside = snp.where(snp.arange(5) < n, x, 0)
    low, high, inner = config
    shape = (greater(low + N + high + greater(N - 1, 0) * inner, 0),)
    got = at.spread(inside, snp.float32(0), [config], shape)
    np.testing.assert_array_equal(got[:length], want)
    assert got.shape == at.shape(shape)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_elements_so_far_apart(n):
    at, x = bucket(n, 3), snp.arange(12.0).reshape(2, 6)
    got = at.every(N, x, 1, N - 1, 3 - N + 1)
    count = 3 - n + 1
    np.testing.assert_array_equal(got[:, :count], x[:, n - 1 :: n][:, :count])
    assert got.shape == (2, at.bound(3 - N + 1))
    np.testing.assert_array_equal(
        at.along(x, 0, snp.asarray([1, 0, 1, 9])), x[snp.array([1, 0, 1, 1])]
    )


def test_parameters_that_hold_sizes_in_any_way():
    at = bucket()
    program = st.make_graph(lambda x: x)(1.0)
    assert at.static(program) is program
    numbers = ConvDimensionNumbers((N, 1), (1, 0), (0, 1))
    assert at.static(numbers) == ConvDimensionNumbers((5, 1), (1, 0), (0, 1))
    assert isinstance(at.static(numbers), ConvDimensionNumbers)
    held = dataclasses.make_dataclass("Held", ["size", "other"], frozen=True)
    assert at.static(held(N, 2)) == held(5, 2)
    plain = held(4, 2)
    assert at.static(plain) is plain
    assert at.static((1, "x", None)) == (1, "x", None)
    assert at.static((N,)) == (5,) and at.static([[N]]) == [[5]]


X5 = snp.arange(5.0)
DONE = {
    "replaced": lambda at: at.filled(X5, array_type((N,), F32), 0),
    "moved to be read": lambda at: at.cut(X5, [snp.asarray(3)], (2,)),
    "moved to be written": lambda at: at.put(X5, snp.ones(2), [snp.asarray(3)]),
    "one by one": lambda at: at.taken(X5, (N,), (N,)),
    "one by one along an axis": lambda at: at.along(X5, 0, snp.asarray([1, 0])),
}
PLAIN = {
    "nothing to replace": lambda at: at.filled(X5, array_type((5,), F32), 0),
    "a part at a number": lambda at: at.cut(X5, [3], (2,)),
    "written at a number": lambda at: at.put(X5, snp.ones(2), [3]),
    "cut": lambda at: at.fit(X5, array_type((N - 1,), F32)),
}


@pytest.mark.parametrize("name", {**DONE, **PLAIN})
def test_what_is_done_for_sizes_that_vary_is_told(name):
    at = bucket()
    {**DONE, **PLAIN}[name](at)
    known = {"replaced", "moved", "one by one"}
    assert at.done == {word for word in known if name.startswith(word) and name in DONE}
