"""An ensemble of small transformers, trained by several processes, and gone on with by one.

Each member reads a sequence of digits and says each next one: the sum of the two before, in the
arithmetic modulo ten. Members are split over one axis of a mesh, and the examples of a batch over
the other. Two processes with two devices each:

    stretto launch -n 2 --devices 2 examples/over_processes.py runs/digits 40

Stop it when you like, and go on from the last checkpoint with as many processes as you like, or
with one, on one device:

    python examples/over_processes.py runs/digits 40
"""

from __future__ import annotations

import os
import sys

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.nn import functional as F

MEMBERS, LENGTH, WIDTH = 4, 12, 16


class Digits(nn.Module):
    """A transformer of one layer, which sees what came before alone."""

    def __init__(self, *, key):
        super().__init__()
        keys = st.random.split(key, 4)
        self.embedding = nn.Embedding(10, WIDTH, key=keys[0])
        self.places = nn.Parameter(0.1 * st.random.normal(keys[1], (LENGTH, WIDTH)))
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, 0.0, batch_first=True, key=keys[2])
        self.head = nn.Linear(WIDTH, 10, key=keys[3])

    def forward(self, digits):
        """Scores of the next digit at each place: (examples, LENGTH, 10)."""
        before = snp.triu(snp.ones((LENGTH, LENGTH), bool), 1)
        x = self.embedding(digits) + self.places
        return self.head(self.layer(x, src_mask=before))


def examples(count=256):
    """Sequences, and the same one place later; int32, (count, LENGTH) both."""
    digits = np.random.default_rng(0).integers(0, 10, (count, 2))
    while digits.shape[1] <= LENGTH:
        digits = np.append(digits, digits[:, -2:].sum(1, keepdims=True) % 10, 1)
    digits = digits.astype(np.int32)
    return digits[:, :-1], digits[:, 1:]


def loss(member, digits, following):
    """The mean cross-entropy of all places but the first, where nothing is known."""
    scores = member(digits)[:, 1:]
    return F.cross_entropy(scores.reshape(-1, 10), following[:, 1:].reshape(-1))


def mesh():
    """Half of the devices along members, two along data; ``None`` where there is one device."""
    count = len(st.devices())
    return None if count == 1 else st.make_mesh((count // 2, 2), ("members", "data"))


def main(directory, steps=40):
    """Train, or go on, until so many steps are done; return the members' losses."""
    if "STRETTO_COORDINATOR" in os.environ:
        st.distributed.initialize()
    ensemble = st.Ensemble.init(lambda key: Digits(key=key), st.random.key(0), MEMBERS)
    fitted = ensemble.fit(
        loss,
        examples(),
        optim.adamw(3e-3),
        steps=steps,
        batch_size=32,
        evaluate_every=4,
        key=st.random.key(1),
        checkpoint=st.ensemble.Checkpoints(directory, every_steps=4),
        mesh=mesh(),
        progress=False,
    )
    losses = fitted.history["loss"]
    if st.distributed.process_index() == 0:
        print(f"step {fitted.state.step} on {len(st.devices())} devices: losses {losses[-1]}")
    return losses


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
