"""The workloads in Stretto."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks import ensembles_stretto, shapes_stretto, workloads
from benchmarks.models import stretto_models as models
from benchmarks.worker import Case, Registry, serve
from stretto._engine.native import native

Function: TypeAlias = Callable[..., Any]

cases = Registry()

COMPILED = partial(st.config, interpret_small=False)
"""A context in which jitted functions are compiled, however small."""


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats, each result awaited."""
    x, y = map(snp.asarray, workloads.eager_add_inputs())
    add = lambda: (x + y).block_until_ready()  # noqa: PLW0108 (the addition is timed)
    return Case(add)


@cases.add("eager-product")
def eager_product() -> Case:
    """`x @ x` on 4 integers, each result awaited."""
    x = snp.asarray(workloads.eager_product_inputs())
    return Case(lambda: (x @ x).block_until_ready())  # noqa: PLW0108


@cases.add("eager-affine")
def eager_affine() -> Case:
    """`x @ W + b`, each result awaited."""
    x, weights, bias = map(snp.asarray, workloads.affine_inputs())
    return Case(lambda: (x @ weights + bias).block_until_ready())  # noqa: PLW0108


@cases.add("eager-jvp")
def eager_jvp() -> Case:
    """Value and derivative in a direction, nothing jitted."""
    xs, weights, bias = map(snp.asarray, workloads.transformed_inputs())
    x, dx = xs[0], xs[1]
    f = lambda x: snp.tanh(x @ weights + bias)
    return Case(lambda: st.block_until_ready(st.jvp(f, (x,), (dx,))), ensembles_stretto.flat)


@cases.add("eager-vjp")
def eager_vjp() -> Case:
    """Value and the function that goes back, called once, nothing jitted."""
    xs, weights, bias = map(snp.asarray, workloads.transformed_inputs())
    x, ct = xs[0], bias
    f = lambda x: snp.tanh(x @ weights + bias)

    def forth_and_back() -> Any:
        y, back = st.vjp(f, x)
        return st.block_until_ready((y, back(ct)))

    return Case(forth_and_back, ensembles_stretto.flat)


@cases.add("eager-vmap")
def eager_vmap() -> Case:
    """A batch of 8, nothing jitted."""
    xs, weights, bias = map(snp.asarray, workloads.transformed_inputs())
    f = lambda x: snp.tanh(x @ weights + bias)
    return Case(lambda: st.vmap(f)(xs).block_until_ready())


@cases.add("eager-gradient")
def eager_gradient() -> Case:
    """The gradient of an MLP's loss, nothing jitted."""
    params, *data = st.tree.map(snp.asarray, workloads.mlp_inputs())
    loss = partial(models.loss, models.mlp)
    return Case(lambda: st.block_until_ready(st.grad(loss)(params, data)), ensembles_stretto.flat)


@cases.add("jitted-affine")
def jitted_affine() -> Case:
    """A compiled `x @ W + b`, each result awaited."""
    x, weights, bias = map(snp.asarray, workloads.affine_inputs())
    affine = st.jit(lambda x, weights, bias: x @ weights + bias)
    return Case(lambda: affine(x, weights, bias).block_until_ready())


@cases.add("jitted-affine-compiled")
def jitted_affine_compiled() -> Case:
    """The same, where nothing is interpreted."""
    return replace(jitted_affine(), within=COMPILED)


@cases.add("jitted-dict")
def jitted_dict() -> Case:
    """A compiled function of a dict of arrays, which returns such a dict."""
    arrays = st.tree.map(snp.asarray, workloads.dict_inputs())
    double = st.jit(lambda arrays: st.tree.map(lambda x: x + x, arrays))
    return Case(
        lambda: st.block_until_ready(double(arrays)), ensembles_stretto.flat, within=COMPILED
    )


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


@cases.add("compile-chain")
def compile_chain() -> Case:
    """StableHLO to executable; each time with no executable in memory."""
    x = snp.asarray(workloads.chain_input())

    def fresh() -> Any:
        st.clear_caches()
        lowered = st.jit(new_chain()).trace(x).lower()
        lowered.as_text()
        return lowered

    return Case(
        lambda lowered: lowered.compile(),
        fresh=fresh,
        arrays=lambda compiled: [np.asarray(compiled(x))],
    )


def new_dead_chain() -> Function:
    """1,000 multiplies whose result nobody uses, as a function that no cache has seen."""
    st.clear_caches()

    def dead_chain(x: Any) -> Any:
        y = x
        for _ in range(workloads.CHAIN_LENGTH):
            y = y * x
        return x + 1

    return dead_chain


@cases.add("dead-chain")
def dead_chain() -> Case:
    """The first call of a jitted function, its result awaited."""
    x = snp.asarray(workloads.chain_input())
    return Case(lambda chain: st.jit(chain)(x).block_until_ready(), fresh=new_dead_chain)


@cases.add("lengths")
def lengths() -> Case:
    """Calls of a jitted function with many shapes, each result awaited."""
    xs = [snp.asarray(x) for x in workloads.lengths_inputs()]

    def fresh() -> Function:
        st.clear_caches()
        return st.jit(lambda x: x * x * x)

    return Case(
        lambda cube: [cube(x).block_until_ready() for x in xs],
        fresh=fresh,
        arrays=lambda results: [np.concatenate(results)],
    )


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices, compiled."""
    x, y = map(snp.asarray, workloads.product_inputs())
    matmul = st.jit(lambda x, y: x @ y)
    return Case(lambda: matmul(x, y).block_until_ready())


ensembles_stretto.register(cases)
shapes_stretto.register(cases)


if __name__ == "__main__":
    serve(
        "stretto",
        ["stretto", "jaxlib", "numpy"],
        "import stretto, stretto.numpy",
        cases,
        config=repr(st.config),
        native=native is not None,
    )
