"""Networks and values of laplace-torch in float64, where the folder of references is there."""

from pathlib import Path

import numpy as np
import pytest

import stretto as st
from stretto import nn

_FOLDERS = [p / "shared" / "reference" / "posteriors" for p in Path(__file__).parents]
_FOUND = [p for p in _FOLDERS if (p / "reference.npz").is_file()]

needs_references = pytest.mark.skipif(not _FOUND, reason="the folder of references is not here")

MODELS = {
    "reg": lambda: nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)),
    "cla": lambda: nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 3)),
    "con": lambda: nn.Sequential(
        nn.Conv2d(1, 2, 3, stride=2, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(18, 3)
    ),
}
LIKELIHOODS = {"reg": "gaussian", "cla": "categorical", "con": "categorical"}


def values():
    """Return the arrays by name."""
    return np.load(_FOUND[0] / "reference.npz")


def network(tag):
    """Return the network of a tag at its MAP, in float64; inside ``enable_x64``."""
    stored = values()
    model = double(MODELS[tag]())
    start = f"{tag}.w."
    model.load_state_dict({k[len(start) :]: stored[k] for k in stored.files if k.startswith(start)})
    return model


def double(model):
    """Return a module in float64 and evaluation mode."""
    return st.tree.cast(model, "float64").eval()


def row(parts):
    """Return a dictionary of arrays as one row."""
    return np.concatenate([np.asarray(x).ravel() for x in parts.values()])
