"""Modes of the modules in members, and arguments of losses."""

import numpy as np

import stretto as st
from stretto import nn
from stretto.ensemble.training.step import arguments_of, in_mode, modes_of


def test_modes():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    (group,) = st.Ensemble([model])._layout.groups
    assert modes_of(group) == [True] * 3
    assert in_mode(group, True) == group.structure
    assert in_mode(group, False) == st.tree.structure(model.eval())


def test_arguments():
    x = np.ones(2)
    assert arguments_of((x, x)) == (x, x)
    assert arguments_of(x)[0] is x
    assert arguments_of({"x": x}) == ({"x": x},)
