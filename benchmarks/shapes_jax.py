"""Shapes that change in JAX: a program for each length; rectangles, padded, with masks by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import workloads_shapes as shapes
from benchmarks.shapes_padded import Padded
from benchmarks.worker import Case, Registry

__all__ = ["register"]

Function: TypeAlias = Callable[..., Any]

PADDED = Padded(
    jnp, jax.lax.scan, jax.nn.softmax, partial(jax.nn.gelu, approximate=False), jax.nn.sigmoid
)


def cube(x: Any) -> Any:
    """The third power."""
    return x * x * x


def attend(q: Any, k: Any, v: Any, x: Any) -> Any:
    """Self-attention with one head."""
    scores = (x @ q) @ (x @ k).T * shapes.WIDTH**-0.5
    return jax.nn.softmax(scores, -1) @ (x @ v)


def called(name: str, warm: bool) -> Case:
    """Calls with arrays of many lengths, each result awaited."""
    xs = [jnp.asarray(x) for x in shapes.call_inputs(name)]
    given = () if name == "cube" else tuple(map(jnp.asarray, shapes.call_weights()))
    fun = cube if name == "cube" else attend

    def new() -> Function:
        jax.clear_caches()
        return jax.jit(fun)

    def run(f: Function) -> Any:
        return [f(*given, x).block_until_ready() for x in xs]

    if warm:
        return Case(partial(run, new()), shapes.summary)
    return Case(run, shapes.summary, fresh=new)


def padded(task: shapes.RaggedTask, bucket: bool) -> Case:
    """The rectangle up to the longest, or up to a power of two, with masks."""
    arrays, lengths = shapes.parts(task.batch), np.array(task.batch.lengths(), np.int32)
    longest = int(lengths.max())
    length = shapes.power_of_two(longest) if bucket else longest
    x, sizes = jnp.asarray(shapes.as_rectangle(arrays, length)), jnp.asarray(lengths)
    weights = jax.tree.map(jnp.asarray, shapes.weights(task.model))
    if task.kind == "gradient":
        run = jax.jit(jax.grad(PADDED.loss(task.model)))
        return Case(lambda: jax.block_until_ready(run(weights, x, sizes)), jax.tree.leaves)
    run = jax.jit(PADDED.apply(task.model))
    return Case(
        lambda: jax.block_until_ready(run(weights, x, sizes)),
        lambda out: shapes.valid_of(np.asarray(out), lengths),
    )


def register(cases: Registry) -> None:
    """Add every row."""
    for name in shapes.CALLS:
        cases.add(f"sizes-{name}-first")(partial(called, name, warm=False))
        cases.add(f"sizes-{name}-warm")(partial(called, name, warm=True))
    for task in shapes.ragged_tasks():
        cases.add(task.name)(partial(padded, task, bucket=False))
        cases.add(task.name, "bucket")(partial(padded, task, bucket=True))
