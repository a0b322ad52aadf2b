"""Eager evaluation: equal to the compiled program, operators equal to the general way."""

import gc
import itertools
import operator
import signal
import threading
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import Value, state
from stretto._engine.core.types import array_type
from stretto._engine.eager.interpreter import (
    EAGER,
    Eager,
    array_of,
    at_home,
    default_sharding,
    quiet,
    wide,
)
from stretto._engine.eager.table import TABLE
from stretto._engine.native import native
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.trigonometric import COS
from stretto.numpy import arithmetic, logic

SHAPES = [(), (0,), (1,), (3,), (0, 3), (2, 0)]
FUNCTIONS = {
    "add": lambda x: x + x,
    "scale": lambda x: 2 * x - 1,
    "negative": lambda x: -x,
    "sum": lambda x: x.sum(),
    "sum of the last": lambda x: x.sum(-1) if x.ndim else x,
    "max": lambda x: snp.max(x, initial=0),
    "reshape": lambda x: x.reshape(-1),
    "transpose": lambda x: x.T,
    "compare": lambda x: (x > 0) & (x == x),
    "where": lambda x: snp.where(x > 0, x, 0 * x),
    "stack": lambda x: snp.stack([x, x]),
    "product": lambda x: snp.dot(x.reshape(-1), x.reshape(-1)),
    "sine": snp.sin,
    "convert": lambda x: x.astype(snp.int8),
    "sort": lambda x: snp.sort(x.reshape(-1)),
    "slice": lambda x: x.reshape(-1)[:1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_the_compiled_program(name):
    f = FUNCTIONS[name]
    cases = [np.ones(shape, dtype) * 2 for shape in SHAPES for dtype in ("f4",)]
    cases += [np.arange(3).astype(t) for t in ("i4", "u1", ml_dtypes.bfloat16, "f2")]
    whole = st.jit(lambda xs: [f(x) for x in xs])
    for x, compiled in zip(cases, whole(cases), strict=True):
        eager = f(snp.asarray(x))
        assert eager.type is compiled.type, (x.shape, x.dtype)
        assert np.asarray(eager).dtype == np.asarray(compiled).dtype
        np.testing.assert_allclose(
            np.asarray(eager, np.float64), np.asarray(compiled, np.float64), rtol=1e-6
        )


# Operators


GENERAL = {
    operator.add: arithmetic.add,
    operator.sub: arithmetic.subtract,
    operator.mul: arithmetic.multiply,
    operator.truediv: arithmetic.true_divide,
    operator.pow: arithmetic.power,
    operator.lt: logic.less,
    operator.le: logic.less_equal,
    operator.gt: logic.greater,
    operator.ge: logic.greater_equal,
    operator.eq: logic.equal,
    operator.ne: logic.not_equal,
}
DTYPES = [np.dtype(t) for t in (bool, "i1", "u1", "i4", "u4", "f2", "f4", "c8", ml_dtypes.bfloat16)]
NUMBERS = [0, 1, -1, 3, 300, 2**40, True, 0.1, 2.5, -0.0, 1e300, float("nan"), float("inf"), 1.5j]


def outcome(f):
    """What a call gives, or the kind of error it raises."""
    try:
        y = f()
    except Exception as error:
        return type(error)
    return (y.type, np.asarray(y).tobytes()) if isinstance(y, st.Array) else y


@settings(max_examples=300)
@given(
    hs.sampled_from(sorted(GENERAL, key=str)),
    hs.sampled_from(DTYPES),
    hs.sampled_from([(), (3,), (0, 3)]),
    hs.one_of(hs.sampled_from(NUMBERS), hs.sampled_from(DTYPES)),
    hs.sampled_from([(), (3,)]),
    hs.booleans(),
)
def test_operators_equal_the_traced_way(op, dtype, shape, other, other_shape, swapped):
    """The short way of operators at rest, and the way through tracing and compiling, agree."""
    x = snp.asarray(np.full(shape, 3, dtype))
    y = snp.asarray(np.full(other_shape, 2, other)) if isinstance(other, np.dtype) else other
    if op is operator.pow and not isinstance(other, np.dtype):
        other = y = 2  # exponents that are Python numbers shape the program
    apply = (lambda x, y: op(y, x)) if swapped else op
    short = outcome(lambda: apply(x, y))
    if isinstance(y, Value):
        traced = outcome(lambda: st.eval_shape(apply, x, y))
        vmapped = outcome(lambda: st.vmap(apply, (0, None))(x[None], y)[0])
    else:
        traced = outcome(lambda: st.eval_shape(lambda x: apply(x, y), x))
        vmapped = outcome(lambda: st.vmap(lambda x: apply(x, y))(x[None])[0])
    if isinstance(short, type) or isinstance(traced, type):
        assert short == traced == vmapped
    else:
        assert (traced.shape, traced.dtype) == (short[0].shape, short[0].dtype)
        assert short == vmapped


def test_operators_equal_the_compiled_way():
    """All pairs that have a result, in one program."""
    names = [t for t in DTYPES if t.name in ("int32", "uint8", "float32", "bfloat16", "complex64")]
    xs = [snp.asarray(np.array([3, 1, 0], t)) for t in names]
    numbers = [1, 3, 0.1, -0.0, 1e300, float("nan")]

    def every(xs):
        out = []
        for op, x, n in itertools.product(list(GENERAL)[:4] + list(GENERAL)[5:], xs, numbers):
            for apply in (op, lambda x, y, op=op: op(y, x)):
                if not (x.dtype.kind in "iu" and isinstance(n, float)):
                    out.append(apply(x, n))
            out.append(op(x, x))
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eager, compiled = every(xs), st.jit(every)(xs)
    for a, b in zip(eager, compiled, strict=True):
        assert a.type is b.type
        np.testing.assert_allclose(
            np.asarray(a).astype("c16"),
            np.asarray(b).astype("c16"),
            rtol=1e-2 if a.dtype.itemsize == 2 else 1e-6,
        )


def test_weak_types_go_on():
    weak, x = st.jit(lambda: 2.0)(), snp.ones(2, snp.bfloat16)
    assert (weak * 3).weak_type and (weak + weak).weak_type and not (weak * x).weak_type
    assert (weak * x).dtype == snp.bfloat16
    assert (st.jit(lambda: 2)() + weak).dtype == snp.float32
    assert (snp.ones(2, snp.int8) * 2).dtype == snp.int8
    assert (snp.ones(2, snp.int8) * 2.0).dtype == snp.float32


def test_overflow_wraps_as_compiled():
    for dtype, start in (("i1", 127), ("u1", 255), ("i4", 2**31 - 1)):
        x = snp.asarray(np.array([start], dtype))
        for f in (lambda x: x + 1, lambda x: x * 2, lambda x: x + x):
            np.testing.assert_array_equal(f(x), st.jit(f)(x))
    with pytest.raises(OverflowError, match="300 does not fit in int8"):
        snp.ones(1, snp.int8) + 300


def test_no_warnings_of_numpy():
    x = snp.array([0.0, -1.0, 1e38])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (
            lambda: x / 0,
            lambda: x * 1e38,
            lambda: snp.log(x),
            lambda: snp.sqrt(x),
            lambda: 1e300 + x,
            lambda: x.astype(snp.int8),
            lambda: snp.array([1]) // 0,
            lambda: x / x,
        ):
            f()
        thread = threading.Thread(target=lambda: x / 0)
        thread.start()
        thread.join()


def test_large_products_are_compiled_and_agree():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 300)).astype(ml_dtypes.bfloat16)
    eager = matmul(snp.asarray(x), snp.asarray(x))
    assert eager.dtype == snp.bfloat16
    want = x.astype(np.float32) @ x.astype(np.float32)
    np.testing.assert_allclose(np.asarray(eager, np.float32), want, rtol=0.02, atol=0.1)


def test_is_the_interpreter_at_rest():
    assert state.interpreter is EAGER
    seen = []
    thread = threading.Thread(target=lambda: seen.append(state.interpreter))
    thread.start()
    thread.join()
    assert seen == [EAGER]
    with pytest.raises(ZeroDivisionError):
        st.grad(lambda x: x * (1 // 0))(1.0)
    assert state.interpreter is EAGER


@pytest.mark.parametrize("order", list(itertools.permutations(["jit", "grad", "vmap"], 2)))
def test_escaped_tracers_name_their_origin(order):
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    for name in order:
        f = getattr(st, name)(f)
        if name == "vmap":
            f = lambda x, mapped=f: mapped(snp.stack([x, x])).sum()
    f(1.0)
    with pytest.raises(st.errors.EscapedTracerError, match="outlived"):
        kept[0] + 1


def test_operations_of_any_number_of_operands():
    one, two = snp.arange(2.0), snp.arange(2.0) + 5
    for _ in range(3):
        for several in ([one], [one, two], [two, one, one], [one, two]):
            joined = st.lax.concatenate(several, 0)
            np.testing.assert_array_equal(joined, np.concatenate([np.asarray(x) for x in several]))


def test_the_short_way_refuses_what_was_donated():
    x = snp.arange(3.0)
    for _ in range(2):
        np.testing.assert_allclose(snp.sin(x), np.sin(np.arange(3.0)), rtol=1e-6)
    x.delete()
    with pytest.raises(st.errors.DonatedArrayError, match="deleted"):
        snp.sin(x)


def test_results_have_the_dtype_that_was_inferred():
    for _ in range(3):
        assert snp.sum(snp.ones(3, snp.int8), dtype=snp.int8).dtype == np.int8
        assert snp.sqrt(snp.ones(3, snp.float16)).dtype == np.float16
        assert snp.exp(snp.asarray(1.0)).shape == ()
        assert isinstance(snp.exp(snp.asarray(1.0)).to_host(), np.ndarray)


WITHIN = {
    "x + y": lambda x: x + x,
    "x + 1.0": lambda x: x + 1.0,
    "1 - x": lambda x: 1 - x,
    "x / 0": lambda x: (x / 0) > 0,
    "x @ x": lambda x: x @ x,
    "add": lambda x: snp.add(x, 2.0),
    "clip": lambda x: snp.clip(x, 0, 1),
    "sum": lambda x: x.sum(),
    "mean": snp.mean,
    "var": snp.var,
    "quantile": lambda x: snp.quantile(x, 0.3),
    "median": snp.median,
    "ldexp": lambda x: snp.ldexp(x, snp.array([1, 2, 3])),
    "histogram": lambda x: snp.histogram(x, 2)[0],
    "nanmax": snp.nanmax,
    "set": lambda x: x.at[0].set(5.0),
    "add at": lambda x: x.at[:2].add(x[:2]),
    "add at places": lambda x: x.at[snp.array([0, 0])].add(1.0),
    "multiply at a mask": lambda x: x.at[x > 0].multiply(2.0),
    "sin": snp.sin,
    "sort": snp.sort,
    "directly": lambda x: snp.fmod(x, 2.0),
    "small jitted": st.jit(lambda x: 2 * x + 1),
    "compiled": st.jit(lambda x: snp.sort(snp.sin(x)) @ snp.exp(x)),
    "grad": st.grad(lambda x: (snp.sin(x) * x).sum()),
    "vmap": st.vmap(lambda x: 2.0 * x + 1.0),
    "scan": lambda x: st.lax.scan(lambda c, a: (c + a, c * a), 0.0, x)[1],
    "text": str,
    "callback": lambda x: st.pure_callback(lambda a: a + 1.0, x, x),
}


@pytest.mark.parametrize("name", WITHIN)
def test_any_function_inside_a_rule_that_runs(name):
    """As a finalizer, a signal handler or a callback may call it: twice deep, and warning of
    nothing."""
    f, x = WITHIN[name], snp.array([3.0, -1.0, 2.0])
    want = f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            once = quiet.run(lambda: f(x))
            twice = quiet.run(lambda: quiet.run(quiet.run, f, x))
            if name == "text":
                assert once == twice == want
            else:
                np.testing.assert_array_equal(once, want)
                np.testing.assert_array_equal(twice, want)
            assert state.interpreter is EAGER


def _in_a_finalizer(work):
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            work()

    Cycle()
    gc.collect()


def _in_a_weakref_callback(work):
    class Thing:
        pass

    thing = Thing()
    reference = weakref.ref(thing, lambda _: work())
    del thing
    assert reference() is None


def _in_a_signal_handler(work):
    before = signal.signal(signal.SIGUSR1, lambda *_: work())
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "where", [_in_a_finalizer, _in_a_weakref_callback, _in_a_signal_handler, lambda work: work()]
)
@pytest.mark.parametrize("name", ["x + 1.0", "clip", "quantile", "small jitted", "scan", "set"])
def test_operations_while_numpy_works(where, name, monkeypatch):
    f, x, got = WITHIN[name], snp.array([3.0, -1.0, 2.0]), []
    want = f(x)

    def cosine(host):
        where(lambda: got.append(f(x)))
        return np.cos(host)

    monkeypatch.setattr(type(COS), "reference", staticmethod(cosine))
    TABLE.pop(COS, None)  # its rule as it was
    try:
        np.testing.assert_array_equal(snp.cos(x), np.cos(np.asarray(x)))
    finally:
        TABLE.pop(COS, None)
    assert len(got) == 1
    np.testing.assert_array_equal(got[0], want)
    assert np.geterr()["over"] == "warn"


# The interpreter of ``default_device``; ``test_placement_default_device`` has what it does.


@pytest.mark.devices
def test_the_interpreter_of_a_device_is_current_in_its_block_alone():
    x = snp.ones(2)
    assert state.interpreter is EAGER and default_sharding() is None and at_home(x) is x
    with st.default_device("cpu:3"):
        assert default_sharding() == st.sharding.SingleDeviceSharding(st.devices()[3])
        assert at_home(x).sharding == default_sharding()
        elsewhere = st.device_put(x, "cpu:5")
        assert at_home(elsewhere) is elsewhere and at_home(7) == 7
    assert state.interpreter is EAGER


@pytest.mark.devices
def test_operations_on_a_device_that_call_python_and_that_fail():
    with st.default_device("cpu:3"):
        out = st.pure_callback(np.sin, st.ShapeDtypeStruct((2,), np.float32), snp.ones(2))
        assert out.device == st.devices()[3]
        with pytest.raises(ValueError, match="broadcast"):
            snp.ones(2) + snp.ones(3)
        kept = []
        st.jit(kept.append)(snp.ones(2))
        with pytest.raises(st.errors.EscapedTracerError):
            snp.sin(kept[0])


@pytest.mark.devices
def test_operations_on_a_device_give_several_results_and_are_checked():
    x = snp.array([3.0, -1.0, 2.0])
    with st.default_device("cpu:3"):
        for out in st.lax.sort((x, x + 1), num_keys=1):
            assert out.device == st.devices()[3]
        assert np.isnan(snp.log(x)[1])
        with st.config(debug_nans=True), pytest.raises(FloatingPointError):
            snp.log(x)
        double = st.jit(lambda x: (2 * x, x))
        assert [out.device for out in double(x)] == [st.devices()[3]] * 2
        with st.config(debug_nans=True), pytest.raises(FloatingPointError):
            st.jit(snp.log)(x)
        assert st.jit(snp.sin)(x).device == st.devices()[3]


def test_which_arrays_of_bfloat16_are_computed_in_float32():
    of = lambda size, name="bfloat16": array_type((size,), np.dtype(name))
    assert wide(of(1024)) and wide(of(5000))
    assert not wide(of(1023)) and not wide(of(5000, "float16")) and not wide(of(5000, "float32"))


def test_arrays_of_what_numpy_computed():
    x = array_of(np.float64(2), np.dtype(np.float32))
    assert (x.dtype, x.shape, x.weak_type) == (np.float32, (), False)
    assert array_of(np.ones(2), np.dtype(np.float32), weak=True).weak_type


@pytest.mark.skipif(native is None, reason="the extension was not built")
def test_operations_go_the_short_way_first():
    assert isinstance(vars(Eager)["process"], native.EagerCall)


@pytest.mark.skipif(native is None, reason="the extension was not built")
@pytest.mark.parametrize(
    ("size", "dtype", "is_kept"),
    [(1023, "bfloat16", True), (1024, "bfloat16", False), (1024, "float32", True)],
)
def test_the_short_way_is_for_what_computes_in_its_own_dtype(monkeypatch, size, dtype, is_kept):
    """What is computed in float32 is not kept, nor what would keep programs or arrays alive."""
    x = snp.ones(size, getattr(snp, dtype))
    for interned in (True, False):
        monkeypatch.setattr(type(COS), "interned", interned)
        TABLE.pop(COS, None)
        for _ in range(2):
            np.testing.assert_array_equal(np.asarray(snp.cos(x)), np.asarray(snp.cos(x[:1]))[0])
            assert (x.type in TABLE.get(COS, {})) is (is_kept and interned)
    TABLE.pop(COS, None)
