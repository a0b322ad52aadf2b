"""The workloads in Stretto."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks import workloads
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


def apply(params: Any, x: Any) -> Any:
    """One network, one batch."""
    for weights, bias in params[:-1]:
        x = snp.maximum(x @ weights + bias, 0)
    weights, bias = params[-1]
    return x @ weights + bias


def loss(params: Any, data: tuple[Any, Any]) -> Any:
    """Mean squared error of one network on one batch."""
    x, target = data
    return snp.mean((apply(params, x) - target) ** 2)


def on_device(batch: workloads.Batch) -> tuple[Any, Any, Any]:
    """The ensemble's parameters, inputs and targets as Stretto's arrays."""
    params, x, target = workloads.ensemble_inputs(batch)
    layers = [(snp.asarray(weights), snp.asarray(bias)) for weights, bias in params]
    return layers, snp.asarray(x), snp.asarray(target)


def vectorised(member: Function, params: Any, data: Any, batch: workloads.Batch) -> Function:
    """`vmap` over the members, compiled: all that a user writes."""
    run = st.jit(st.vmap(member, in_axes=(0, 0 if batch == "own" else None)))
    return lambda: st.block_until_ready(run(params, data))


def ensemble_forward(batch: workloads.Batch) -> Case:
    """The outputs of all members."""
    params, x, _ = on_device(batch)
    return Case(vectorised(apply, params, x, batch))


def ensemble_gradient(batch: workloads.Batch) -> Case:
    """The gradients of all members' losses with respect to their parameters."""
    params, x, target = on_device(batch)
    run = vectorised(st.grad(loss), params, (x, target), batch)
    return Case(run, arrays=lambda layers: [np.asarray(leaf) for layer in layers for leaf in layer])


for _batch in workloads.BATCHES:
    cases.add(f"ensemble-forward-{_batch}")(partial(ensemble_forward, _batch))
    cases.add(f"ensemble-gradient-{_batch}")(partial(ensemble_gradient, _batch))


if __name__ == "__main__":
    serve("stretto", ["stretto", "jaxlib", "numpy"], "import stretto, stretto.numpy", cases)
