"""The workloads in JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import ensembles_jax, shapes_jax, workloads
from benchmarks.models import jax_models as models
from benchmarks.worker import Case, Registry, serve

Function: TypeAlias = Callable[..., Any]

cases = Registry()


@cases.add("eager-add")
def eager_add() -> Case:
    """`x + y` on 4 floats, each result awaited."""
    x, y = map(jnp.asarray, workloads.eager_add_inputs())
    add = lambda: (x + y).block_until_ready()  # noqa: PLW0108 (the addition is timed)
    return Case(add)


@cases.add("eager-product")
def eager_product() -> Case:
    """`x @ x` on 4 integers, each result awaited."""
    x = jnp.asarray(workloads.eager_product_inputs())
    return Case(lambda: (x @ x).block_until_ready())  # noqa: PLW0108


@cases.add("eager-affine")
def eager_affine() -> Case:
    """`x @ W + b`, each result awaited."""
    x, weights, bias = map(jnp.asarray, workloads.affine_inputs())
    return Case(lambda: (x @ weights + bias).block_until_ready())  # noqa: PLW0108


@cases.add("eager-jvp")
def eager_jvp() -> Case:
    """Value and derivative in a direction, nothing jitted."""
    xs, weights, bias = map(jnp.asarray, workloads.transformed_inputs())
    x, dx = xs[0], xs[1]
    f = lambda x: jnp.tanh(x @ weights + bias)
    return Case(lambda: jax.block_until_ready(jax.jvp(f, (x,), (dx,))), ensembles_jax.flat)


@cases.add("eager-vjp")
def eager_vjp() -> Case:
    """Value and the function that goes back, called once, nothing jitted."""
    xs, weights, bias = map(jnp.asarray, workloads.transformed_inputs())
    x, ct = xs[0], bias
    f = lambda x: jnp.tanh(x @ weights + bias)

    def forth_and_back() -> Any:
        y, back = jax.vjp(f, x)
        return jax.block_until_ready((y, back(ct)))

    return Case(forth_and_back, ensembles_jax.flat)


@cases.add("eager-vmap")
def eager_vmap() -> Case:
    """A batch of 8, nothing jitted."""
    xs, weights, bias = map(jnp.asarray, workloads.transformed_inputs())
    f = lambda x: jnp.tanh(x @ weights + bias)
    return Case(lambda: jax.vmap(f)(xs).block_until_ready())


@cases.add("eager-gradient")
def eager_gradient() -> Case:
    """The gradient of an MLP's loss, nothing jitted."""
    params, *data = jax.tree.map(jnp.asarray, workloads.mlp_inputs())
    loss = partial(models.loss, models.mlp)
    return Case(lambda: jax.block_until_ready(jax.grad(loss)(params, data)), ensembles_jax.flat)


@cases.add("jitted-affine")
@cases.add("jitted-affine-compiled")
def jitted_affine() -> Case:
    """A compiled `x @ W + b`, each result awaited."""
    x, weights, bias = map(jnp.asarray, workloads.affine_inputs())
    affine = jax.jit(lambda x, weights, bias: x @ weights + bias)
    return Case(lambda: affine(x, weights, bias).block_until_ready())


@cases.add("jitted-dict")
def jitted_dict() -> Case:
    """A compiled function of a dict of arrays, which returns such a dict."""
    arrays = jax.tree.map(jnp.asarray, workloads.dict_inputs())
    double = jax.jit(lambda arrays: jax.tree.map(lambda x: x + x, arrays))
    return Case(lambda: jax.block_until_ready(double(arrays)), ensembles_jax.flat)


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


@cases.add("compile-chain")
def compile_chain() -> Case:
    """StableHLO to executable; JAX keeps none of another function in memory."""
    x = jnp.asarray(workloads.chain_input())
    return Case(
        lambda lowered: lowered.compile(),
        fresh=lambda: jax.jit(new_chain()).trace(x).lower(),
        arrays=lambda compiled: [np.asarray(compiled(x))],
    )


def new_dead_chain() -> Function:
    """1,000 multiplies whose result nobody uses, as a function that no cache has seen."""

    def dead_chain(x: Any) -> Any:
        y = x
        for _ in range(workloads.CHAIN_LENGTH):
            y = y * x
        return x + 1

    return dead_chain


@cases.add("dead-chain")
def dead_chain() -> Case:
    """The first call of a jitted function, its result awaited."""
    x = jnp.asarray(workloads.chain_input())
    return Case(lambda chain: jax.jit(chain)(x).block_until_ready(), fresh=new_dead_chain)


@cases.add("lengths")
def lengths() -> Case:
    """Calls of a jitted function with many shapes, each result awaited."""
    xs = [jnp.asarray(x) for x in workloads.lengths_inputs()]

    def fresh() -> Function:
        jax.clear_caches()  # they would grow by the programs of each time
        return jax.jit(lambda x: x * x * x)

    return Case(
        lambda cube: [cube(x).block_until_ready() for x in xs],
        fresh=fresh,
        arrays=lambda results: [np.concatenate(results)],
    )


@cases.add("product")
def product() -> Case:
    """`x @ y` on square matrices, compiled."""
    x, y = map(jnp.asarray, workloads.product_inputs())
    matmul = jax.jit(jnp.matmul)
    return Case(lambda: matmul(x, y).block_until_ready())


ensembles_jax.register(cases)
shapes_jax.register(cases)


if __name__ == "__main__":
    serve("jax", ["jax", "jaxlib", "numpy"], "import jax, jax.numpy", cases)
