"""The workloads in Stretto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks import ensembles_stretto, workloads
from benchmarks.worker import Case, Registry, serve

Function: TypeAlias = Callable[..., Any]

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats, each result awaited."""
    x, y = map(snp.asarray, workloads.eager_add_inputs())
    add = lambda: (x + y).block_until_ready()  # noqa: PLW0108 (the addition is timed)
    return Case(add)


@cases.add("jitted-affine")
def jitted_affine() -> Case:
    """A compiled `x @ W + b`, each result awaited."""
    x, weights, bias = map(snp.asarray, workloads.affine_inputs())
    affine = st.jit(lambda x, weights, bias: x @ weights + bias)
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
    x = snp.asarray(workloads.chain_input())
    return Case(
        lambda chain: st.jit(chain).trace(x),
        fresh=new_chain,
        arrays=lambda traced: [np.asarray(traced.lower().compile()(x))],
    )


@cases.add("lower-chain")
def lower_chain() -> Case:
    """Typed program to StableHLO.

    The text is what the compiler takes, so it is forced: `lower` must not get away with
    leaving the work for later.
    """
    x = snp.asarray(workloads.chain_input())

    def lower(traced: Any) -> Any:
        lowered = traced.lower()
        lowered.as_text()
        return lowered

    return Case(
        lower,
        fresh=lambda: st.jit(new_chain()).trace(x),
        arrays=lambda lowered: [np.asarray(lowered.compile()(x))],
    )


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices, compiled."""
    x, y = map(snp.asarray, workloads.product_inputs())
    matmul = st.jit(lambda x, y: x @ y)
    return Case(lambda: matmul(x, y).block_until_ready())


ensembles_stretto.register(cases)


if __name__ == "__main__":
    serve("stretto", ["stretto", "jaxlib", "numpy"], "import stretto, stretto.numpy", cases)
