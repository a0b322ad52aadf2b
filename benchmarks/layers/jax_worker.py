"""The rows in JAX, jitted: a twin of each layer, written with jax.numpy, jax.lax and jax.nn."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmarks.layers import jax_features, jax_images, jax_losses, jax_sequences
from benchmarks.layers.catalogue import registry
from benchmarks.layers.jax_twins import Twin, Updated
from benchmarks.layers.row import Task, compared, cotangents, parameter
from benchmarks.layers.shapes import parameter_shapes, statistics_of
from benchmarks.worker import Case, serve

TWINS: dict[str, Twin] = {
    **jax_images.twins.found,
    **jax_features.twins.found,
    **jax_sequences.twins.found,
    **jax_losses.twins.found,
}


def make(task: Task) -> Case:
    """One row at one size."""
    twin, layer, differentiated = TWINS[task.row.target], task.layer, task.differentiated
    inputs = list(map(jnp.asarray, task.values))
    floats = [x for x, by in zip(inputs, differentiated) if by]
    rest = [x for x, by in zip(inputs, differentiated) if not by]
    parameters, buffers = {}, {}
    if layer is not None:
        shapes = parameter_shapes(layer)
        parameters = {name: jnp.asarray(parameter(name, x)) for name, x in shapes.items()}
        buffers = {name: jnp.full(*one) for name, one in statistics_of(layer).items()}
    mode = {"training": True} if task.row.training else {}

    def apply(floats: Any, parameters: Any, rest: Any, buffers: Any, key: Any) -> Any:
        """Outputs, and running statistics as the call leaves them."""
        one, other = iter(floats), iter(rest)
        args = task.arranged([next(one if by else other) for by in differentiated])
        known = {**parameters, **buffers, **mode, "key": key}
        result = twin(known, *args, **task.options, **task.row.call)
        if isinstance(result, Updated):
            return jax.tree.leaves(result.output), result.buffers
        return jax.tree.leaves(result), {}

    def gradient(floats: Any, parameters: Any, rest: Any, buffers: Any, key: Any, ct: Any) -> Any:
        outputs, back, buffers = jax.vjp(
            lambda floats, parameters: apply(floats, parameters, rest, buffers, key),
            floats,
            parameters,
            has_aux=True,
        )
        return outputs, buffers, back(ct)

    arguments = (floats, parameters, rest, buffers, jax.random.PRNGKey(0))
    run = jax.jit(apply)
    if task.kind == "gradient":
        outputs, _ = jax.eval_shape(apply, *arguments)
        arguments += (list(map(jnp.asarray, cotangents([x.shape for x in outputs]))),)
        run = jax.jit(gradient)
    return Case(lambda: jax.block_until_ready(run(*arguments)), partial(results, task))


def results(task: Task, found: Any) -> list[NDArray[Any]]:
    """What is compared, in the order of all frameworks."""
    outputs, buffers, *gradients = found
    arrays = list(outputs)
    for floats, parameters in gradients:
        arrays += [*floats, *[x for _, x in sorted(parameters.items())]]
    arrays += [x for _, x in sorted(buffers.items())]
    return compared(task, list(map(np.asarray, arrays)))


cases = registry("jax", make)


if __name__ == "__main__":
    serve("jax", ["jax", "jaxlib", "numpy"], "import jax, jax.numpy", cases)
