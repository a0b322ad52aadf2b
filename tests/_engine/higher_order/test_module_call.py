"""The operation that is a module from a file."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.module_call import ModuleCall
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.passes.barriers import run_on_xla_thread

TEXT = """func.func private @the_main(%arg0: tensor<3xf32>, %arg1: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3xf32>
  %1 = stablehlo.multiply %arg0, %0 : tensor<3xf32>
  return %1 : tensor<3xf32>
}"""
VECTOR, SCALAR = [array_type(shape, np.dtype(np.float32)) for shape in ((3,), ())]
CALL, LOOPED = [
    ModuleCall(
        "times", TEXT, "the_main", (), ("tensor<3xf32>", "tensor<f32>"), ("tensor<3xf32>",),
        (VECTOR, SCALAR), (VECTOR,), ("cpu",), None, False, loops,
    )
    for loops in (False, True)
]  # fmt: skip
X, Y = snp.array([1.0, 2.0, 3.0]), snp.array(2.0)


def times(x, y):
    return CALL(x, y)[0]


def test_it_runs_eagerly_and_compiled():
    for f in (times, st.jit(times), st.jit(lambda x, y: times(times(x, y), y) / y)):
        np.testing.assert_array_equal(f(X, Y), [2, 4, 6])
    assert (
        st.jit(lambda x, y: times(x, y) + times(x, y)).lower(X, Y).as_text().count("private") == 1
    )


def test_it_may_take_long():
    """So that an interrupt is heard while it runs: a file may have a loop without end."""
    program = st.make_graph(times)(X, Y)
    assert not lower(program).facts.may_take_long and run_on_xla_thread(program) is program
    program = st.make_graph(lambda x, y: LOOPED(x, y)[0])(X, Y)
    assert lower(program).facts.may_take_long
    assert len(run_on_xla_thread(program).equations) > 1


def test_it_is_mapped_by_a_loop():
    xs = snp.stack([X, 10 * X])
    np.testing.assert_array_equal(st.vmap(times, (0, None))(xs, Y), 2 * xs)
    ys = snp.array([1.0, 2.0])
    np.testing.assert_array_equal(st.jit(st.vmap(times, (None, 0)))(X, ys), [X, 2 * X])


def test_it_runs_in_loops_and_branches():
    looped = lambda x: st.lax.fori_loop(0, 3, lambda i, c: times(c, Y), x)
    np.testing.assert_array_equal(st.jit(looped)(X), 8 * X)
    chosen = lambda x: st.lax.cond(x[0] > 0, lambda x: times(x, Y), lambda x: x, x)
    np.testing.assert_array_equal(st.jit(chosen)(X), 2 * X)


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"times: operand 1 must be float32\[\], got float32\[3\]"):
        times(X, X)
    with pytest.raises(st.errors.MissingRuleError, match="no derivative of this order"):
        st.grad(lambda x: snp.sum(times(x, Y)))(X)
    with pytest.raises(st.errors.MissingRuleError, match="export the function that it was made of"):
        CALL.onnx(None)


def test_what_it_shows():
    assert repr(CALL) == "module_call[of='times', main='the_main']"
    assert "module_call a b [of=times, main=the_main]" in str(st.make_graph(times)(X, Y))
