"""Which operations at rest are compiled: by types alone, where it pays, and with equal results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.config import config
from stretto._engine.core.cost import CPU
from stretto._engine.core.primitive import PRIMITIVES
from stretto._engine.core.types import array_type, kind_of
from stretto._engine.eager import interpreter
from stretto._engine.higher_order.family import Call
from stretto._engine.ops import sort, thresholds
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.exponential import EXP
from stretto._engine.ops.extrema import MAX
from stretto._engine.ops.linalg import qr, triangular
from stretto._engine.ops.reducing import window
from stretto._engine.ops.reducing.window import AxisWindow
from stretto._engine.ops.special import bessel, error_functions

LOADED = (bessel, error_functions)
F32, F64, C64, I64 = (np.dtype(d) for d in (np.float32, np.float64, np.complex64, np.int64))
MEASURED = [cls for cls in PRIMITIVES if issubclass(cls, Elementwise) and any(cls.costs)]
CASES = [(cls, dtype) for cls in MEASURED for dtype in cls.compiled_from]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


# The costs


def test_what_is_measured_is_known():
    assert len(MEASURED) == 35
    assert sum(len(cls.costs.sizes(slower=1.0)) for cls in MEASURED) == 55


@pytest.mark.parametrize("cls", MEASURED, ids=lambda cls: cls.name)
def test_what_has_costs_leads(cls):
    measured = {dtype_of(d): cost for d, cost in cls.costs._asdict().items() if cost is not None}
    assert cls.costs.sizes(slower=1.0).keys() == measured.keys()
    assert cls.compiled_from == cls.costs.sizes(CPU.vectors)
    for dtype, cost in measured.items():
        assert cost.numpy >= thresholds.LEAD * cost.compiled
        if dtype not in cls.compiled_from:
            assert cost.numpy < thresholds.LEAD * CPU.vectors * cost.compiled
            continue
        assert kind_of(dtype) in cls.accepts
        assert cls.compiled_from[dtype] >= thresholds.NARROW


def test_compiling_is_repaid():
    cost = thresholds.Cost(numpy=12.0, compiled=2.0, compiling=40.0)
    size = thresholds.from_size(cost)
    saved = thresholds.CALLS * size * (cost.numpy - cost.compiled) * 1e-6
    assert cost.compiling <= saved < 1.001 * cost.compiling
    slower = thresholds.from_size(cost._replace(compiling=80.0))
    assert slower == 2 * size
    assert thresholds.from_size(cost._replace(numpy=1e9)) == thresholds.NARROW
    assert thresholds.from_size(cost._replace(numpy=1e9), least=1) == 1


def test_with_slower_vectors_later_or_never():
    cost = thresholds.Cost(numpy=12.0, compiled=2.0, compiling=40.0)
    costs = thresholds.Costs(float32=cost, float64=cost._replace(compiled=7.0))
    measured, slower = costs.sizes(slower=1.0), costs.sizes(slower=2.0)
    assert measured[F32] == thresholds.from_size(cost)
    assert measured.keys() == {F32, F64}
    assert slower == {F32: thresholds.from_size(cost._replace(compiled=4.0))}


# The sizes that follow from what was measured: who measures again writes them anew.
SIZES = {
    "HALF": {"float16": 609757},
    "EXTREMUM": {"float16": 409837},
    "ROUNDED": {"float16": 757576},
    "NEXTAFTER": {"float32": 337838, "float64": 320513},
    "SQRT": {"float16": 806452, "complex64": 526686},
    "EXP": {"complex64": 105043},
    "EXP2": {"complex64": 86806},
    "LOG": {"complex64": 83334},
    "LOGISTIC": {"complex64": 78617},
    "POW": {"complex64": 41667},
    "CIRCULAR": {"complex64": 132043},
    "HYPERBOLIC": {"complex64": 69833},
    "ARC": {"complex64": 363373},
    "ATAN": {"complex64": 110425},
    "ATANH": {"complex64": 128074},
    "ERF": {"float32": 609757, "bfloat16": 454546, "float16": 231482},
    "ERFC": {"float32": 781251, "bfloat16": 403226, "float16": 206612},
    "ERF_INV": {"float32": 182482, "bfloat16": 200000, "float16": 159236},
    "BESSEL": {"float32": 133929, "float64": 133929, "bfloat16": 133929, "float16": 156904},
    "BESSEL_GROWING": {
        "float32": 111941, "float64": 111941, "bfloat16": 111941, "float16": 113637,
    },
}  # fmt: skip


def test_all_costs_have_their_sizes():
    found = {name: x for name, x in vars(thresholds).items() if isinstance(x, thresholds.Costs)}
    sizes = {
        name: {dtype.name: size for dtype, size in costs.sizes(slower=1.0).items()}
        for name, costs in found.items()
    }
    assert sizes == SIZES


def test_the_rule_s_own_numbers():
    """Sixteen calls repay 40 ms where each element saves 10 ns; less than 1.3 is no lead."""
    assert thresholds.from_size(thresholds.Cost(12.0, 2.0)) == 250_000
    assert thresholds.from_size(thresholds.Cost(1e6, 0.0)) == thresholds.NARROW == 32_768
    led, not_led = (thresholds.Costs(float32=thresholds.Cost(x, 1.0)) for x in (1.301, 1.299))
    assert led.sizes(slower=1.0) and not not_led.sizes(slower=1.0)


# Decisions


@pytest.mark.parametrize(("cls", "dtype"), CASES, ids=lambda x: x.name)
def test_elementwise_operations_are_compiled_from_a_size_on(cls, dtype):
    primitive, size = cls(), cls.compiled_from[dtype]
    for weak in (False, True):
        below, least = (array_type((n,), dtype, weak) for n in (size - 1, size))
        assert not primitive.compiled((below, below, below))
        assert primitive.compiled((least, least, least))


def test_most_elementwise_operations_never_are():
    huge = array_type((1 << 40,), F32)
    assert not any(p.compiled((huge, huge)) for p in (ADD, MAX, EXP))


def types(dtype, *shapes):
    return tuple(array_type(shape, dtype) for shape in shapes)


PRODUCT = DotGeneral(((1,), (0,)))
PLACE = window.WindowPlace(1, AxisWindow(2, 2), True)
TRIDIAGONAL = triangular.TridiagonalSolve
DECISIONS = {
    "top_k": (sort.TopK(3), types(F32, (43403,)), types(F32, (43402,))),
    "place": (PLACE, types(F32, (4, 187500)), types(F32, (4, 187498))),
    "cholesky": (triangular.Cholesky(), types(F32, (1631, 4, 4)), types(F32, (1630, 4, 4))),
    "large matrices": (
        triangular.Cholesky(),
        types(F32, (1631, 32, 32)),
        types(F32, (1631, 33, 33)),
    ),
    "matrices larger by an element": (
        qr.Geqrf(),
        types(F32, (1631, 64, 16)),
        types(F32, (1631, 41, 25)),
    ),
    "products of integers": (
        PRODUCT,
        types(I64, (32847, 173), (173, 1)),
        types(I64, (32842, 173), (173, 1)),
    ),
    "few integers": (
        PRODUCT,
        types(I64, (128, 256), (256, 1000)),
        types(I64, (127, 258), (258, 1000)),
    ),
    "none": (TRIDIAGONAL(True), types(F32, (3,), (3,), (3,), (3, 1)), None),
    "systems": (
        TRIDIAGONAL(False),
        types(F32, (9999, 3), (9999, 3), (9999, 3), (9999, 3, 1)),
        types(F32, (99, 3), (99, 3), (99, 3), (99, 3, 1)),
    ),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_other_operations_are_compiled_where_large(name):
    primitive, large, small = DECISIONS[name]
    assert primitive.compiled(large)
    assert small is None or not primitive.compiled(small)


# Results


@pytest.fixture
def compiled(monkeypatch):
    """The names of the primitives that were compiled."""
    names, run = [], interpreter.run_primitive

    def noted(primitive, *args):
        names.append(primitive.name)
        return run(primitive, *args)

    monkeypatch.setattr(interpreter, "run_primitive", noted)
    return names


def normal(size, dtype):
    random = np.random.default_rng(0)
    numbers = random.standard_normal(size)
    if kind_of(dtype) == "complex":
        numbers = numbers + 1j * random.standard_normal(size)
    return snp.asarray(numbers.astype(dtype))


RUNS = {
    "erf": (st.lax.erf, F32, 1 << 20, 1e-6),
    "exp": (snp.exp, C64, 1 << 18, 1e-6),
    "add": (lambda x: x + x, np.dtype(np.float16), 1 << 20, 0),
    "top_k": (lambda x: st.lax.top_k(x, 5)[1], F32, 1 << 16, 0),
    "fft": (snp.fft.fft, C64, 1 << 16, 3e-5),
}


@pytest.mark.parametrize("name", RUNS)
def test_results_are_equal_with_the_switch_on_and_off(compiled, name):
    function, dtype, size, tolerance = RUNS[name]
    x = normal(size, dtype)
    with config(eager_compiled=True):
        on = function(x)
        assert compiled == [name]
    with config(eager_compiled=False):
        off = function(x)
    assert compiled == [name]
    assert on.type is off.type
    on, off = (np.asarray(out) for out in (on, off))
    # Relative to the greatest, since sums of a transform cancel.
    np.testing.assert_allclose(on, off, rtol=tolerance, atol=tolerance * np.abs(off).max())


def test_the_switch_leaves_what_was_asked_to_be_compiled():
    assert Call.only_compiled
    assert not ADD.only_compiled
    assert [TRIDIAGONAL(perturb).only_compiled for perturb in (True, False)] == [True, False]
    with config(eager_compiled=False, interpret_small=False):
        assert st.jit(lambda x: x + 1)(snp.ones(3)).sum() == 6


def test_long_loops_are_interpreted_with_the_switch_off(compiled):
    step = lambda total, x: (total + snp.sum(x), None)
    xs = snp.ones((300, 2))
    with config(eager_compiled=False):
        assert st.lax.scan(step, snp.zeros(()), xs)[0] == 600
    assert compiled == []


# bfloat16


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "maximum", "less", "fmod"])
def test_many_bfloat16_numbers_go_by_float32_to_the_same(name):
    x, y = (np.asarray(normal(3000, F32)).astype(ml_dtypes.bfloat16) for _ in range(2))
    y = y[::-1]
    got = getattr(snp, name)(snp.asarray(x), snp.asarray(y))
    want = getattr(np, name)(x, y)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("name", ["exp", "tanh", "sqrt", "floor", "sign", "negative"])
def test_functions_of_bfloat16_numbers_are_right_to_rounding(name):
    x = np.abs(np.asarray(normal(3000, F32))).astype(ml_dtypes.bfloat16)
    got = getattr(snp, name)(snp.asarray(x))
    want = getattr(np, name)(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(got), want)
