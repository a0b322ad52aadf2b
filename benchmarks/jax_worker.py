"""The workloads in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import ensembles_jax, workloads
from benchmarks.worker import Case, Registry, serve

Function: TypeAlias = Callable[..., Any]

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats, each result awaited."""
    x, y = map(jnp.asarray, workloads.eager_add_inputs())
    add = lambda: (x + y).block_until_ready()  # noqa: PLW0108 (the addition is timed)
    return Case(add)


@cases.add("jitted-affine")
def jitted_affine() -> Case:
    """A compiled `x @ W + b`, each result awaited."""
    x, weights, bias = map(jnp.asarray, workloads.affine_inputs())
    affine = jax.jit(lambda x, weights, bias: x @ weights + bias)
    return Case(lambda: affine(x, weights, bias).block_until_ready())


def new_chain() -> Function:
    """1,000 multiplies by `x`, as a function that no cache has seen."""

    def chain(x: Any) -> Any:
        y = x
        for _ in range(workloads.CHAIN_LENGTH):
            y = y * x
        return y

    return chain


@cases.add("trace-chain")
def trace_chain() -> Case:
    """Python function to typed program."""
    x = jnp.asarray(workloads.chain_input())
    return Case(
        lambda chain: jax.jit(chain).trace(x),
        fresh=new_chain,
        arrays=lambda traced: [np.asarray(traced.lower().compile()(x))],
    )


@cases.add("lower-chain")
def lower_chain() -> Case:
    """Typed program to StableHLO.

    `lower` builds the module that the compiler takes; printing it (`as_text`, a fifth on top)
    is not needed to go on, so it is not charged.
    """
    x = jnp.asarray(workloads.chain_input())
    return Case(
        lambda traced: traced.lower(),
        fresh=lambda: jax.jit(new_chain()).trace(x),
        arrays=lambda lowered: [np.asarray(lowered.compile()(x))],
    )


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices, compiled."""
    x, y = map(jnp.asarray, workloads.product_inputs())
    matmul = jax.jit(jnp.matmul)
    return Case(lambda: matmul(x, y).block_until_ready())


ensembles_jax.register(cases)


if __name__ == "__main__":
    serve("jax", ["jax", "jaxlib", "numpy"], "import jax, jax.numpy", cases)
