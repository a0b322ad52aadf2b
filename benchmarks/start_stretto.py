"""A user's first program in Stretto: it starts, and computes an ensemble once.

`starts` runs it, and has the clock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import stretto as st
from benchmarks import wire, workloads


def mlp(params: Any, x: Any) -> Any:
    """Dense layers with ReLU between them."""
    for weights, bias in params[:-1]:
        x = st.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


if __name__ == "__main__":
    params, x = workloads.start_inputs()
    ensemble = st.jit(st.vmap(mlp, in_axes=(0, None)))
    wire.tell(np.asarray(ensemble(params, x)))
