"""The linear recurrence: the laws, and its definition."""

import numpy as np
import pytest

from stretto._engine.api.jit.jit import jit
from stretto._engine.core.config import enable_x64
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.reducing.cumulative import LinearRecurrence, shift_by_one
from stretto.laws import bf16, c64, f32, f64, law


def along(axis=0, reverse=False):
    return lambda a, b: LinearRecurrence(axis, reverse)(as_value(a), as_value(b))


LAWS = [
    law(LinearRecurrence, along(0), f32(5), f32(5)),
    law(LinearRecurrence, along(0, True), f32(35, 2), f32(35, 2)),
    law(LinearRecurrence, along(0), c64(3), c64(3)),
    law(LinearRecurrence, along(0), f64(1), f64(1)),
    law(LinearRecurrence, along(0), f32(0), f32(0)),
    law(LinearRecurrence, along(0), bf16(3), bf16(3)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_is_its_definition():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, 50))
    want, y = [], 0.0
    for i in range(50):
        y = a[i] * y + b[i]
        want.append(y)
    with enable_x64():
        for run in (lambda g: g, jit):
            np.testing.assert_allclose(run(along())(a, b), want, rtol=1e-12, atol=1e-14)
            backwards = run(along(0, True))(a[::-1], b[::-1])
            np.testing.assert_allclose(backwards, want[::-1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_long_axes(run):
    n = 100_000
    y = run(along())(np.full(n, 0.5, np.float32), np.ones(n, np.float32))
    np.testing.assert_allclose(y, 2 - 0.5 ** np.arange(n), rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_shifted(reverse):
    x = np.array([1.0, 2.0, 3.0], np.float32)
    want = [2, 3, 9] if reverse else [9, 1, 2]
    np.testing.assert_array_equal(shift_by_one(as_value(x), 0, reverse, 9), want)


def test_refuses():
    with pytest.raises(TypeError, match=r"got float32\[2\] and float32\[3\]"):
        along()(np.ones(2, np.float32), np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"inexact numbers, got int32\[2\]"):
        along()(np.ones(2, np.int32), np.ones(2, np.int32))


@pytest.mark.parametrize("axis", [-1, 1])
def test_an_axis_that_is_not_there_is_refused(axis):
    type = array_type((3,), np.dtype(np.float32))
    with pytest.raises(TypeError, match=f"expected operands of one type with an axis {axis}, got"):
        LinearRecurrence(axis, False).infer(type, type)
    for other in (array_type((4,), type.dtype), array_type((3,), np.dtype(np.float64))):
        with pytest.raises(TypeError, match="expected operands of one type with an axis 0, got"):
            LinearRecurrence(0, False).infer(type, other)


def test_a_recurrence_is_weak_where_both_operands_are():
    weak, strong = (array_type((3,), np.dtype(np.float32), w) for w in (True, False))
    for types in ((weak, weak), (weak, strong), (strong, weak), (strong, strong)):
        assert LinearRecurrence(0, False).infer(*types).weak_type is (strong not in types)
