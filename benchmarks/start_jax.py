"""A user's first program in JAX: it starts, and computes an ensemble once.

`starts` runs it, and has the clock.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from benchmarks import wire, workloads


def mlp(params: Any, x: Any) -> Any:
    """Dense layers with ReLU between them."""
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


if __name__ == "__main__":
    params, x = workloads.start_inputs()
    ensemble = jax.jit(jax.vmap(mlp, in_axes=(0, None)))
    wire.tell(np.asarray(ensemble(params, x)))
