"""Axes that are joined: where operations treat them alike, and that results are the same."""

import random

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import Var, check
from stretto._engine.passes.join_axes import join_axes
from stretto.nn import functional as F

X = snp.asarray(np.random.default_rng(0).standard_normal((2, 64, 8, 9), np.float32))
A = snp.asarray(np.random.default_rng(1).standard_normal((64, 1, 1), np.float32))


def joined(f, *args):
    """The program before and after, which give the same."""
    before = st.make_graph(f)(*args)
    after = join_axes(before)
    check(after)
    assert after.out_types == before.out_types
    for one, other in zip(evaluate(before, args), evaluate(after, args), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    return before, after


def shapes(program, *names):
    return {e.outputs[0].type.shape for e in program.equations if e.primitive.name in names}


def test_what_is_repeated_along_both_axes():
    _, after = joined(lambda x, a: abs(x * a), X, A)
    assert shapes(after, "mul", "abs", "broadcast_in_dim") == {(2, 64, 72)}


def test_sums_over_both_axes_and_over_the_batch():
    _, after = joined(lambda x, a: ((x * a).sum((0, 2, 3)), x.max((2, 3))), X, A)
    (total, greatest) = [e for e in after.equations if e.primitive.name.startswith("reduce")]
    assert (total.primitive.axes, greatest.primitive.axes) == ((0, 2), (2,))
    assert total.outputs[0] is after.outputs[0]


def test_sums_over_what_is_not_joined():
    _, after = joined(lambda x, a: ((x * a).sum(1), (x * a).sum((0, 1))), X, A)
    reduced = [e for e in after.equations if e.primitive.name == "reduce_sum"]
    assert [e.outputs[0].type.shape for e in reduced] == [(2, 72), (72,)]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, a: x * a + x[0, 0, 0],  # the last axis by itself
        lambda x, a: (x * a).sum(3),
        lambda x, a: (x * a).sum(-2, keepdims=True) + x,
        lambda x, a: abs(x) + 1,  # one loop without that
        lambda x, a: x[:1, :2] * a[:2],  # too small
        lambda x, a: lax.rev(x, (2,)) + snp.transpose(x, (0, 1, 2, 3)),
    ],
)
def test_what_stays(f):
    before, after = joined(f, X, A)
    assert after is before


@pytest.mark.parametrize(("channels", "stays"), [(32, False), (31, True)])
def test_from_4096_elements_on(channels, stays):
    before, after = joined(lambda x, a: abs(x * a), X[:, :channels, :, :8], A[:channels])
    assert (after is before) is stays


def test_axes_of_one_element_are_part_of_any_group():
    x = X.reshape(2, 64, 8, 1, 9)
    _, after = joined(lambda x, a: (x * a[..., None]).sum((3,)), x, A)
    assert shapes(after, "mul") == {(2, 64, 72)}
    _, after = joined(lambda x, a: (x * a[..., None]).sum((2, 4)), x, A)
    assert shapes(after, "reduce_sum") == {(2, 64)}


def test_the_same_array_joined_and_as_it_is():
    """It is an output, read by a convolution, and by what works element by element."""

    def f(x, a):
        y = F.relu(x * a)
        return y, F.conv2d(y, snp.ones((4, 64, 1, 1))), y + a

    _, after = joined(f, X, A)
    assert shapes(after, "conv_general_dilated") == {(2, 4, 8, 9)}
    assert shapes(after, "add", "select") == {(2, 64, 72)}


def test_operands_that_have_the_axes_alone():
    plane = snp.ones((8, 9))
    _, after = joined(lambda x, a, p: x * a + p, X, A, plane)
    assert shapes(after, "add", "mul") == {(2, 64, 72)}


def test_barriers_and_choices_with_one_condition():
    def f(x, a):
        y = lax.optimization_barrier(x * a)
        return lax.select(a[0, 0, 0] > 0, y, snp.zeros_like(y)) - y

    _, after = joined(f, X, A)
    assert shapes(after, "optimization_barrier", "select", "sub") == {(2, 64, 72)}


def test_sizes_that_vary_stay():
    shape = st.ShapeDtypeStruct((st.dynamic_size("n"), 64, 8, 9), "float32")
    program = st.make_graph(lambda x: abs(x * x.sum((2, 3), keepdims=True)))(shape)
    assert join_axes(program) is program


def operation(rng, values, a):
    """One more operation on some of these values of the same shape."""
    x, y = rng.choice(values), rng.choice(values)
    kind = rng.randrange(9)
    if kind == 0:
        return x * a
    if kind == 1:
        return x - x.mean((0, 2, 3), keepdims=True)
    if kind == 2:
        return F.silu(x) + y
    if kind == 3:
        return snp.where(x > 0, y, 0.5)
    if kind == 4:
        return x + y.sum((2, 3), keepdims=True) * 0.01
    if kind == 5:
        return x + x[0, 0, 0] if rng.random() < 0.3 else x + a
    if kind == 6:
        return lax.optimization_barrier(x) * 0.5
    if kind == 7:
        return snp.sort(x, 1)
    return x + y.max((0, 1)) * 0.1


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_and_their_gradients(seed):
    def f(x, a):
        rng = random.Random(seed)
        values = [x]
        for _ in range(12):
            values.append(operation(rng, values, a))
        return snp.tanh(values[-1]).sum() + snp.tanh(values[-3] * 0.1).sum(), values[-2]

    both = st.grad(f, (0, 1), has_aux=True)
    _, after = joined(lambda x, a: [*both(x, a)[0], both(x, a)[1]], X, A)
    made = {v for e in after.equations for v in e.outputs}
    assert all([a in made for a in after.outputs if isinstance(a, Var)])
    members = st.vmap(both, in_axes=(0, None))
    joined(lambda x, a: [*members(x, a)[0], members(x, a)[1]], snp.stack([X, 2 * X]), A)
