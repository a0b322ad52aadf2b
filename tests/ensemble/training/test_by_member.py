"""Rows of members in arguments, and results of packs in the places of their members."""

import dataclasses

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.ensemble.training.by_member import in_places, is_row, of_each


def test_what_has_a_row_for_each_member():
    assert is_row([0.1, 0.2]) and is_row(np.ones(2)) and is_row(snp.ones((2, 3)))
    assert not (is_row(0.1) or is_row(np.float32(1)) or is_row(snp.ones(())) or is_row("adam"))


def test_rows_are_checked():
    columns = of_each({"rate": [0.1, 0.2], "decay": 0.5}, 2, "hyperparams")
    assert list(columns) == ["rate"]
    np.testing.assert_array_equal(columns["rate"], np.float32([0.1, 0.2]))
    with pytest.raises(ValueError, match=r"hyperparams\['rate'\] .* each of 3 members"):
        of_each({"rate": [0.1, 0.2]}, 3, "hyperparams")
    with pytest.raises(ValueError, match=r"per_member\['x'\]"):
        of_each({"x": 0.5}, 2, "per_member", every=True)


def test_results_are_put_in_places():
    ensemble = st.Ensemble(lambda p, x: p * x, [1.0, 2.0, 3.0])
    loss = lambda member, x: member(x).mean()
    (pack,) = st.ensemble.Trainer(loss, optim.sgd(0.1)).start(ensemble, st.random.key(0)).packs
    assert in_places([pack], [{"loss": snp.arange(3.0)}], 3)["loss"].shape == (3,)
    some = dataclasses.replace(pack, group=dataclasses.replace(pack.group, places=(2, 0)))
    placed = in_places([some], [{"loss": snp.array([5.0, 7.0])}], 3)["loss"]
    np.testing.assert_array_equal(placed, [7, np.nan, 5])
