"""Softmax and its like: which padding counts as 0, and that it does whatever the values are."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn
from stretto._engine.autodiff.below_greatest import below_greatest
from tests._engine.autodiff.test_padded import ROWS, program_of


def known(f):
    program, *_ = program_of(f, ROWS)
    found = below_greatest(program)
    return list(found.differences.values()), list(found.zeros.values())


def test_softmax_is_known_by_its_form():
    assert known(lambda x: nn.functional.softmax(x, 0)) == ([(0,)], [(0,), (0,)])
    assert known(lambda x: nn.functional.softmax(x @ x.T, -1)) == ([(1,)], [(1,), (1,)])
    assert known(lambda x: snp.exp(x - lax.stop_gradient(x).max((0, 1)))) == ([(0, 1)], [(0, 1)])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: snp.exp(x - x.min(0)),
        lambda x: snp.exp(x - snp.max(x * 2, 0)),
        lambda x: snp.exp(x @ x.T - (x @ x.T).max(1)),  # of another row
        lambda x: snp.exp(x - 1),
    ],
)
def test_nothing_else_is(f):
    assert known(f) == ([], [])


def test_quotients_by_another_sum_are_not():
    f = lambda x: (y := snp.exp(x - x.max(0))) / (y.sum(1, keepdims=True))
    assert known(f) == ([(0,)], [(0,)])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_values_are_those_without_padding(value):
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4) / 9
    x[1, 2] = value
    x[:, 3] = value
    f = lambda x: (
        nn.functional.softmax(x, 0),
        nn.functional.softmax(x, 0).sum(0),
        nn.functional.softmax(x @ x.T, -1) @ x,
        snp.exp(x - x.max(0)).sum(),
    )
    got = st.jit(f, dynamic_axes=({0: "n"},))(x)
    for a, b in zip(got, f(snp.asarray(x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
