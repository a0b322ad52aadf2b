"""Random functions of ragged examples, a few of those of ``make ragged-storm``."""

from unittest import mock

import pytest

import stretto.numpy as snp
from tests.property.ragged_storm import FUNCTIONS, Case, disagreement, draw_case


@pytest.mark.parametrize("seed", range(6))
def test_ragged_examples_are_each_by_itself(seed):
    case = draw_case(seed)._replace(lengths=(5, 1, 12))
    assert not disagreement(case), case.words


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function(name):
    case = Case((name,), 1, True, "", "mean", (7, 30), 3)
    assert not disagreement(case), case.words


def test_a_wrong_number_is_found():
    """The function is traced first for all examples, then for each."""
    case = Case(("affine",), 1, False, "", "mean", (7, 3), 3)
    calls = iter(range(100))
    differs = {"affine": lambda w, x: snp.tanh(x @ w[3]) * (1 + 1e-4 * (next(calls) > 0))}
    with mock.patch.dict(FUNCTIONS, differs):
        assert "the value is" in disagreement(case)
