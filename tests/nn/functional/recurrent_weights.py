"""Weights for the tests of recurrent networks."""

import numpy as np

import stretto.numpy as snp

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


def weights(kind, seed=0, inputs=2, hidden=3):
    rng, rows = np.random.default_rng(seed), GATES[kind] * hidden
    shapes = [(rows, inputs), (rows, hidden), (rows,), (rows,)]
    return [snp.array(rng.normal(size=s).astype("f") / 2) for s in shapes]
