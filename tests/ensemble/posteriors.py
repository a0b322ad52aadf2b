"""The reference networks of posteriors: laplace-torch's values, in float64 at their MAP."""

import json
from pathlib import Path

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import fit_laplace

FOLDER = Path(__file__).parents[3] / "shared" / "reference" / "posteriors"
needs_reference = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the reference values")

SETTINGS = {
    "reg": {"likelihood": "gaussian", "noise": 0.2},
    "cla": {"likelihood": "categorical"},
    "con": {"likelihood": "categorical"},
}
STRUCTURES = {"full": "full", "diagonal": "diag", "kron": "kron"}
WEIGHTS = {"all": "*", "last_layer": "last"}


def values():
    """Return the reference values by name: arrays and numbers."""
    arrays = dict(np.load(FOLDER / "reference.npz"))
    return {**json.loads((FOLDER / "reference.json").read_text()), **arrays}


def fitted(tag, found, **changed):
    """Return the posterior of a reference network."""
    x, y, _ = data(tag, found)
    return fit_laplace(network(tag, found), (x, y), **{**SETTINGS[tag], **changed}, batch_size=7)


def network(tag, found):
    """Return the network of this name with its weights."""
    layers = {
        "reg": lambda: (nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)),
        "cla": lambda: (nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 3)),
        "con": lambda: (
            nn.Conv2d(1, 2, 3, stride=2, padding=1),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(18, 3),
        ),
    }
    model = nn.Sequential(*layers[tag]())
    lead = f"{tag}.w."
    weights = {n.removeprefix(lead): x for n, x in found.items() if n.startswith(lead)}
    model.load_state_dict({n: snp.asarray(x) for n, x in weights.items()})
    return model.eval()


def data(tag, found):
    """Return inputs, targets and inputs to predict."""
    return [snp.asarray(found[f"{tag}.{n}"]) for n in ("x", "y", "xt")]


def close(a, b, rtol=1e-9, atol=1e-11):
    """Hold two results together, of float64 and a few hundred operations."""
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def table(count=30, inputs=2, classes=3, seed=0):
    """Return inputs and labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, inputs))
    return snp.asarray(x), snp.asarray(rng.integers(classes, size=count).astype(np.int32))


def perceptron(seed, inputs=2, outputs=3, width=5):
    """Return a network of float64."""
    first, second = st.random.split(st.random.key(seed))
    layers = nn.Linear(inputs, width, key=first), nn.Tanh(), nn.Linear(width, outputs, key=second)
    return st.tree.map(lambda w: w.astype(np.float64), nn.Sequential(*layers))
