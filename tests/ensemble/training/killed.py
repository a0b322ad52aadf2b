"""A training that saves its state after every step, for ``test_kill`` to kill.

Run as a program with a directory for checkpoints and a file for the result.
"""

import sys

import numpy as np

import stretto as st
from stretto import nn, optim
from stretto.ensemble import Checkpoints, EarlyStopping

STEPS, FEATURES = 120, 3
# With a negative learning rate members get worse, and are stopped.
RATES = [-0.05, 0.02, -0.05, 0.01, -0.05]


class Net(nn.Module):
    def __init__(self, key):
        super().__init__()
        self.fc = nn.Linear(FEATURES, 2, key=key)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return self.drop(self.norm(self.fc(x))).sum(-1)


def loss(member, x, y):
    return ((member(x) - y) ** 2).mean()


def optimizer(learning_rate):
    decay = optim.cosine_decay_schedule(1.0, STEPS)
    return optim.chain(
        optim.clip_by_global_norm(1.0),
        optim.scale_by_adam(),
        optim.scale_by_schedule(decay),
        optim.scale(-learning_rate),
    )


def run(directory):
    """Train from where the directory's last checkpoint is; the result as arrays by name."""
    x = np.random.default_rng(0).normal(size=(64, FEATURES)).astype(np.float32)
    y = x.sum(1)
    keys = st.random.split(st.random.PRNGKey(1), len(RATES))
    fitted = st.Ensemble([Net(key) for key in keys]).fit(
        loss,
        (x, y),
        optimizer,
        steps=STEPS,
        batch_size=8,
        order="bootstrap",
        key=st.random.PRNGKey(2),
        hyperparams={"learning_rate": RATES},
        validation=(x[:20], y[:20]),
        evaluate_every=10,
        early_stopping=EarlyStopping(patience=2),
        checkpoint=Checkpoints(directory, every_steps=1, keep=2),
    )
    leaves = enumerate(st.tree.leaves((fitted.ensemble, fitted.state.packs, fitted.state.finished)))
    found = {f"leaf {i}": np.asarray(x) for i, x in leaves}
    return {**found, **fitted.history, "stopped": np.array(sorted(fitted.stopped.items()))}


if __name__ == "__main__":
    result = run(sys.argv[1])
    with open(sys.argv[2], "wb") as file:
        np.savez(file, **result)
