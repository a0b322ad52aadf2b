"""The networks in JAX, as a process."""

from __future__ import annotations

from benchmarks.networks import cases_jax
from benchmarks.worker import Registry, serve

cases = Registry()
cases_jax.register(cases)


if __name__ == "__main__":
    serve("jax", ["jax", "jaxlib", "numpy"], "import jax, jax.numpy", cases)
