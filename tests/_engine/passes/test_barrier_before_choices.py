"""Barriers behind what is compared with elements chosen from it."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.graph import make_graph
from stretto._engine.core.shardings import Placement, SingleDeviceSharding
from stretto._engine.passes.barrier_before_choices import barrier_before_choices
from stretto._engine.passes.prepare import for_platform, prepare
from stretto._engine.xla.device import Device
from stretto.laws import FULLY

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def names(program):
    return [e.primitive.name for e in program.equations]


def barred(fun, *args):
    """How many barriers the program of a function gets, its inner programs' with it."""
    program = barrier_before_choices(prepare(make_graph(fun)(*args)))
    holders = [e.primitive for e in program.equations if e.primitive.holds_programs]
    inner = [n for holder in holders for p in holder.programs() for n in names(p)]
    return [*names(program), *inner].count("optimization_barrier")


def test_all_who_read_the_value_read_it_behind_the_barrier():
    program = make_graph(st.grad(lambda x: (x * x).max()))(X)
    after = barrier_before_choices(program)
    assert names(after).count("optimization_barrier") == 1
    (barrier,) = [e for e in after.equations if e.primitive.name == "optimization_barrier"]
    readers = [e for e in after.equations if barrier.inputs[0] in e.inputs]
    assert readers == [barrier]
    compared = [e for e in after.equations if barrier.outputs[0] in e.inputs]
    assert {"reduce_max", "eq"} <= {e.primitive.name for e in compared}


def _compared_with_a_threshold(x):
    y = x * 2 + 1
    return snp.where(y < snp.sort(y)[:, -2:-1], -snp.inf, y)


def _compared_after_a_call(x):
    y = x * 2 + 1
    least = st.jit(lambda y: snp.sort(y)[:, 0])(y)
    return y == least[:, None]


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: snp.argmax(x * 2 + 1, 1),
        lambda x: (x * 2 + 1).max(1) == (x * 2 + 1).T,
        _compared_with_a_threshold,
        _compared_after_a_call,
        lambda x: st.jit(lambda y: snp.argmin(y, 0))(x * 2 + 1),
        lambda x: lax.scan(lambda c, row: (c + snp.argmax(row * 2 + 1), c), 0, x),
        st.grad(lambda x: lax.cummax(x * 2 + 1).sum()),
        st.grad(lambda x: snp.sum(x * x + 1, 1).max()),
        lambda x: snp.argmax((x @ x.T).astype(snp.bfloat16), 0),
    ],
)
def test_what_kernels_would_compute_again_is_barred(fun):
    assert barred(fun, X) == 1


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: snp.argmax(x, 1),  # an argument
        lambda x: snp.argmax(x.T, 1),
        lambda x: snp.argmax(snp.sort(x, 1), 1),  # a kernel of its own
        lambda x: (x * 2 + 1).max(),  # nothing is compared
        lambda x: snp.exp(x * 2 - (x * 2).max()),
        lambda x: snp.argmax((x * 2).astype(np.int32), 1),  # exact
        lambda x: (x * 2 + 1 > 3) & (x.max() > 1),
    ],
)
def test_what_is_in_memory_or_exact_is_not(fun):
    assert barred(fun, X) == 0


def test_a_program_without_choices_is_left_as_it_is():
    plain = make_graph(lambda x: (x * 2).sum())(X)
    assert barrier_before_choices(plain) is plain
    compared = make_graph(lambda x: snp.argmax(x * 2))(X)
    assert barrier_before_choices(compared) is barrier_before_choices(compared)


def test_on_every_platform():
    program = prepare(make_graph(st.grad(lambda x: (x * 2).max()))(X))
    for platform in ("gpu", "cpu"):
        device = Device(platform, 0)
        placement = Placement((device,), None, (SingleDeviceSharding(device),), (None,))
        assert "optimization_barrier" in names(for_platform(program, placement))
    assert "optimization_barrier" in names(for_platform(program, None))


def _outer(p, r, m):
    return p[:, None] * p[:, None] + r * r - m


FORMS = {
    "a product of rows and a matrix": lambda p, r, m: (p * p)[:, None] - m,
    "of columns": lambda p, r, m: r * r - m,
    "of columns and rows": lambda p, r, m: r * r - p[:, None],
    "of rows and columns": lambda p, r, m: (p * p)[:, None] - r,
    "squares and rows": lambda p, r, m: m * m + (p * p)[:, None],
    "both": _outer,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(8, 8), (33, 257)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_extrema_places_and_gradients_of_what_kernels_round_differently(form, sizes, axis):
    rng = np.random.default_rng(0)
    shapes = (sizes[:1], sizes[1:], sizes)
    args = [rng.standard_normal(shape, np.float32) for shape in shapes]
    fun = FORMS[form]

    def slopes(*args):
        return st.grad(lambda *args: snp.max(fun(*args), axis).sum(), (0, 1, 2))(*args)

    def chosen(*args):
        y = fun(*args)
        counts = (y == y.min(axis, keepdims=True)).sum(axis)
        return slopes(*args), snp.argmin(y, axis), counts

    def kept(*args):
        y = fun(*args)
        return (y >= snp.sort(y, -1)[:, -3:-2]).sum(-1)

    # As users compile: without LLVM's optimization kernels round alike more often.
    got, places, counts = st.jit(chosen, compiler_options=FULLY)(*args)
    for slope, want in zip(got, slopes(*args), strict=True):
        np.testing.assert_allclose(slope, want, rtol=1e-4, atol=1e-4)
    exact = fun(*[x.astype(np.float64) for x in args])
    found = np.take_along_axis(
        exact if axis is not None else exact.ravel(),
        np.expand_dims(np.asarray(places), axis) if axis is not None else np.ravel(places),
        axis,
    )
    np.testing.assert_allclose(found.ravel(), exact.min(axis).ravel(), rtol=1e-4, atol=1e-5)
    assert np.all(np.asarray(counts) == 1)
    assert np.all(np.asarray(st.jit(kept, compiler_options=FULLY)(*args)) == 3)
