"""The rows in JAX, as a process with virtual devices."""

from __future__ import annotations

import os

from benchmarks.devices.table import COUNTS

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={max(COUNTS)}"

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.devices import cases as rows
from benchmarks.worker import Registry, serve

cases = Registry()
rows.register(
    cases,
    jax,
    jnp,
    lambda n, name: jax.sharding.Mesh(np.array(jax.devices()[:n]), (name,)),
    jax.shard_map,
    jax.tree.leaves,
)


if __name__ == "__main__":
    serve("jax", ["jax", "jaxlib", "numpy"], "import jax", cases)
