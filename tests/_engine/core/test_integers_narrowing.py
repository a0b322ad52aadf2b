import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.integers import check_fits, fits, narrow

STAMPS = 1_700_000_000_000 + np.arange(200) * 86_400_000
WIDE = np.array([3, 2**40 + 7, -(2**40)])
LONG = np.int64(2**40 + 1)
INT32, UINT32 = np.dtype(np.int32), np.dtype(np.uint32)
X = snp.array([5, 6, 7])


def test_bounds_are_those_of_the_dtype():
    for dtype, least, greatest in (
        (np.int32, -(2**31), 2**31 - 1),
        (np.uint32, 0, 2**32 - 1),
        (np.int8, -128, 127),
        (ml_dtypes.int4, -8, 7),
        (ml_dtypes.uint4, 0, 15),
        (ml_dtypes.int2, -2, 1),
    ):
        wanted = np.dtype(dtype)
        assert fits(np.array([least, greatest]), wanted)
        assert not fits(np.array([least - 1, 0]), wanted)
        assert not fits(np.array([0, greatest + 1]), wanted)
        assert fits(np.int64(greatest), wanted)
        assert not fits(np.int64(greatest + 1), wanted)
        assert fits(np.zeros((0, 3), np.int64), wanted)
    assert not fits(np.array(2**63, np.uint64), INT32)


@pytest.mark.parametrize("place", [0, 1 << 15, 99_999])
@pytest.mark.parametrize("layout", ["rows", "columns", "strided"])
def test_each_element_of_large_arrays_is_looked_at(place, layout):
    flat = np.arange(100_000)
    x = {
        "rows": flat.reshape(100, 1000),
        "columns": np.asfortranarray(flat.reshape(100, 1000)),
        "strided": np.repeat(flat, 2)[::2],
    }[layout]
    made = narrow(x, INT32, "f", "x")
    assert made.dtype == np.int32
    assert made.flags.c_contiguous
    np.testing.assert_array_equal(made, x)
    x[np.unravel_index(place, x.shape)] = 2**31
    with pytest.raises(OverflowError, match=r"^f: x holds integers from \d+ to 2147483648, int64"):
        narrow(x, INT32, "f", "x")


def test_errors_say_what_where_and_what_to_do():
    with pytest.raises(OverflowError) as caught:
        snp.mean(STAMPS)
    for part in (
        "mean: a holds integers from 1700000000000 to 1717193600000, int64[200]",
        "int32 (-2147483648 to 2147483647)",
        "enable_x64 = True",
        "astype('float32')",
        "subtract an offset",
    ):
        assert part in str(caught.value)
    with pytest.raises(OverflowError, match=r"f: x is the integer 300, int64, which does not fit"):
        check_fits(np.int64(300), np.dtype(np.int8), "f", "x", asked=True)


def test_the_ways_out_give_the_right_numbers():
    with st.enable_x64():
        assert float(snp.mean(STAMPS)) == STAMPS.mean()
        assert bool((snp.array([5]) < LONG)[0])
    np.testing.assert_allclose(snp.mean(STAMPS.astype("float32")), STAMPS.mean(), rtol=1e-6)
    np.testing.assert_allclose(snp.mean(snp.asarray(STAMPS, "float32")), STAMPS.mean(), rtol=1e-6)
    offset = (STAMPS - STAMPS[0]) // 1000
    np.testing.assert_allclose(snp.mean(offset), offset.mean(), rtol=1e-6)


def test_what_fits_is_converted_as_before():
    for x in (np.arange(3), np.int64(-(2**31)), np.array(2**31 - 1), np.zeros((0,), np.int64)):
        made = snp.asarray(x)
        assert made.dtype == np.int32
        np.testing.assert_array_equal(made, x)
    assert snp.asarray(np.array([2**32 - 1], np.uint64)).tolist() == [2**32 - 1]
    assert snp.asarray(np.array([2**32 - 1]), snp.uint32).tolist() == [2**32 - 1]


def step(carry, x):
    return carry, x


compiled = st.jit(lambda x, n: x * n)
ENTRIES = {
    "asarray": lambda: snp.asarray(WIDE),
    "array of several": lambda: snp.array([WIDE, WIDE]),
    "array of scalars": lambda: snp.array([LONG, 1]),
    "uint64": lambda: snp.asarray(np.array([2**32], np.uint64)),
    "longlong": lambda: snp.asarray(np.array([2**40], "q")),
    "a dtype": lambda: snp.asarray(WIDE, snp.int32),
    "a narrow dtype": lambda: snp.array(np.array([300]), snp.int8),
    "an unsigned dtype": lambda: snp.asarray(np.array([-1]), snp.uint32),
    "a scalar class": lambda: snp.int32(WIDE),
    "device_put": lambda: st.device_put({"a": WIDE}),
    "from_dlpack": lambda: snp.from_dlpack(WIDE),
    "frombuffer": lambda: snp.frombuffer(WIDE.tobytes(), np.int64),
    "a comparison": lambda: X < LONG,
    "a reflected comparison": lambda: LONG > X,
    "an equality": lambda: X == WIDE,
    "a sum": lambda: X + WIDE,
    "a reflected sum": lambda: WIDE + X,
    "a sum with floats": lambda: snp.ones(3) + LONG,
    "jit": lambda: compiled(WIDE, 1),
    "jit of a scalar": lambda: compiled(LONG, 1),
    "jit by name": lambda: compiled(x=1, n=WIDE),
    "a constant": lambda: st.jit(lambda x: x + WIDE)(X),
    "vmap": lambda: st.vmap(lambda x: x + 1)(WIDE),
    "grad": lambda: st.grad(lambda x, n: snp.sum(x * n))(snp.ones(3), WIDE),
    "scan": lambda: st.lax.scan(step, 0, WIDE),
    "a carry": lambda: st.lax.scan(step, LONG, X),
    "while_loop": lambda: st.lax.while_loop(lambda n: n < 0, lambda n: n, LONG),
    "fori_loop": lambda: st.lax.fori_loop(0, LONG, lambda i, x: x, 1),
    "switch": lambda: st.lax.switch(LONG, [lambda: 1, lambda: 2]),
    "set": lambda: X.at[0].set(LONG),
    "add": lambda: X.at[:].add(WIDE),
    "where": lambda: snp.where(X > 5, WIDE, X),
    "searchsorted": lambda: snp.searchsorted(X, LONG),
    "searched": lambda: snp.searchsorted(WIDE, X),
    "argsort": lambda: snp.argsort(STAMPS),
    "full": lambda: snp.full(3, LONG),
    "full of a dtype": lambda: snp.full(3, LONG, snp.int32),
    "full_like": lambda: snp.full_like(X, LONG),
    "linspace": lambda: snp.linspace(0, LONG, 3),
    "linspace of integers": lambda: snp.linspace(0, 2**40, 3, dtype=int),
    "linspace of floats as integers": lambda: snp.linspace(snp.array(0.0), 1e12, 3, dtype=int),
    "geomspace": lambda: snp.geomspace(1, 2**40, 3, dtype=int),
    "logspace": lambda: snp.logspace(0, 12, 3, dtype=int),
    "arange": lambda: snp.arange(LONG, LONG + 3),
    "choice": lambda: st.random.choice(st.random.key(0), LONG),
    "fold_in": lambda: st.random.fold_in(st.random.key(0), LONG),
    "a dynamic slice": lambda: st.lax.dynamic_slice(X, (LONG,), (1,)),
    "a sum's start": lambda: snp.sum(X, initial=LONG),
    "weighted_sum": lambda: st.tree.weighted_sum([WIDE, WIDE], [0.5, 0.5]),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_refuses_what_does_not_fit(name):
    compiled(np.arange(3), 1)  # so that the short way of the call is taken as well
    compiled(np.int64(3), 1)
    with pytest.raises(OverflowError, match=r"not fit in|out of bounds for|more than 32 bits"):
        ENTRIES[name]()


def test_errors_name_the_argument_of_the_function():
    for _ in range(2):
        with pytest.raises(OverflowError, match=r"^\w+: n holds integers from"):
            compiled(1.0, WIDE)
    with pytest.raises(OverflowError, match=r"device_put: x\['a'\] holds"):
        st.device_put({"a": WIDE})


def test_conversions_that_are_asked_for_keep_the_low_bits():
    low = WIDE.astype(np.int32)
    np.testing.assert_array_equal(snp.astype(WIDE, snp.int32), low)
    np.testing.assert_array_equal(st.lax.convert_element_type(WIDE, np.int32), low)
    assert snp.array([300]).astype(snp.int8).tolist() == [44]


def test_indices_are_exact():
    assert X[WIDE].tolist() == [7, 7, 5]
    assert X.at[WIDE].set(1).tolist() == [5, 6, 7]


def test_jaxs_meaning_wraps():
    with st.config(integer_overflow="wrap"):
        assert snp.asarray(WIDE).tolist() == WIDE.astype(np.int32).tolist()
        assert snp.asarray(np.tile(WIDE, 20_000))[-3:].tolist() == WIDE.astype(np.int32).tolist()
        assert (X < LONG).tolist() == [False, False, False]
        assert compiled(WIDE, 1).tolist() == WIDE.astype(np.int32).tolist()
        assert snp.asarray(WIDE, snp.int8).tolist() == WIDE.astype(np.int8).tolist()
        assert st.random.key_data(st.random.key(2**32 + 1)).tolist() == [0, 1]
    assert st.random.key_data(st.random.key(2**32 + 1)).tolist() == [1, 1]


def test_dates_are_refused():
    for x in (np.array(["2020-01-01"], "M8[s]"), np.array([1], "m8[s]")):
        with pytest.raises(TypeError, match="numeric types"):
            snp.asarray(x)
