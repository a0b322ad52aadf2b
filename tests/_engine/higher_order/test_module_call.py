"""The operation that is a module from a file."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.module_call import ModuleCall
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.passes.barriers import run_on_xla_thread
from stretto.laws import f32, i32, law

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

# Counts down to zero in steps of its first argument and one.
STEPS = """func.func private @steps_main(%arg0: tensor<i32>, %arg1: tensor<i32>) -> (tensor<i32>, tensor<i1>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %step = stablehlo.add %arg0, %one : tensor<i32>
  %0:2 = stablehlo.while(%left = %arg1, %n = %zero) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare GT, %left, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.subtract %left, %step : tensor<i32>
    %2 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<i32>
  }
  %3 = stablehlo.compare EQ, %0#0, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0#1, %3 : tensor<i32>, tensor<i1>
}"""  # noqa: E501
COUNT, FLAG = [array_type((), np.dtype(d)) for d in ("int32", "bool")]
TOLD = ModuleCall(
    "steps", STEPS, "steps_main", (), ("tensor<i32>",) * 2, ("tensor<i32>", "tensor<i1>"),
    (COUNT,), (COUNT, FLAG), ("cuda", "cpu"), np.dtype(np.int32), False, True,
)  # fmt: skip


def times(x, y):
    return CALL(x, y)[0]


LAWS = [
    # Of a module there is no derivative, and none for many examples at once: see below.
    law(ModuleCall, times, f32(3), f32(), derivative=False, mapped=False),
    law(ModuleCall, TOLD, i32().within(3, 9), mapped=False),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


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


def test_it_is_told_which_of_its_platforms_it_runs_on():
    """Here that is the second, number 1, so that it counts down in twos."""
    for f in (TOLD, st.jit(TOLD)):
        assert [[int(x) for x in f(n)] for n in (snp.array(6), snp.array(7))] == [[3, 1], [4, 0]]


def test_it_takes_one_example_at_a_time():
    xs = snp.stack([X, 10 * X])
    words = r"no vmap rule: it is a module of StableHLO.* stretto.lax.map\(f, xs\).*dynamic_axes"
    for mapped in (st.vmap(times, (0, None)), st.jit(st.vmap(times, (0, None)))):
        with pytest.raises(st.errors.MissingRuleError, match=words):
            mapped(xs, Y)
    np.testing.assert_array_equal(st.lax.map(lambda x: times(x, Y), xs), 2 * xs)
    np.testing.assert_array_equal(st.vmap(lambda x: x + times(X, Y))(xs), xs + 2 * X)


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
