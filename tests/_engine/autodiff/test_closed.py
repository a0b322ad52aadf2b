"""Recording programs that need nothing from outside."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.closed import record_closed
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.errors import EscapedTracerError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import check
from stretto._engine.core.types import array_type

F32 = array_type((3,), np.dtype(np.float32))
X = np.array([1, 2, 3], np.float32)


def closed(f, *types):
    program, extra = record_closed(lambda *args: ([f(*args)], "extra"), types, "rule")
    check(program)
    assert extra == "extra" and program.in_types == types and program.name == "rule"
    return program


def test_without_captured_arrays():
    program = closed(snp.sin, F32)
    assert [e.primitive.name for e in program.equations] == ["sin"]


def test_captured_arrays_are_constants_of_the_program():
    outside = snp.array([10.0, 20.0, 30.0])
    program = closed(lambda x: x * outside + outside, F32)
    assert [e.primitive.name for e in program.equations].count("constant") == 1
    np.testing.assert_array_equal(
        *evaluate(program, [as_value(X)]), X * [10, 20, 30] + [10, 20, 30]
    )


def test_only_what_outputs_need():
    unused = snp.array([10.0, 20.0, 30.0])

    def f(x):
        snp.exp(x) + unused
        return x + x

    assert [e.primitive.name for e in closed(f, F32).equations] == ["add"]


def test_traced_values_from_outside_are_refused():
    def f(y):
        record_closed(lambda x: ([x + y], None), [F32], "cosine's jvp")
        return y

    with pytest.raises(EscapedTracerError, match="cosine's jvp: a traced value from outside"):
        st.jit(f)(X)
