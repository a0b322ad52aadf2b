"""The rows in Stretto, jitted: layers and functions by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stretto as st
import stretto.numpy as snp
from benchmarks.layers.catalogue import registry
from benchmarks.layers.row import Task, compared, cotangents, parameter
from benchmarks.parity.ours import built
from benchmarks.worker import Case, serve
from stretto import lax, nn, tree
from stretto.nn import functional

Function = Callable[..., Any]


OPERATIONS: dict[str, Function] = {
    "sort": snp.sort,
    "argsort": snp.argsort,
    "top_k": lambda x, k: lax.top_k(x, k)[0],
    "argmax": lambda x: snp.argmax(x, -1),
    "cumsum": snp.cumsum,
    "cumprod": snp.cumprod,
    "cummax": lambda x, axis: lax.cummax(x, axis=axis),
    "logsumexp": lambda x, axis: nn.logsumexp(x, dim=axis),
    "variance": snp.var,
    "norm": lambda x, axis: snp.linalg.norm(x, axis=axis),
    "one_hot": lambda x, num_classes: nn.one_hot(x, num_classes).astype(snp.float32),
    "gather": lambda x, at: snp.take_along_axis(x, at, 1),
    "segment_sum": st.lax.segment_sum,
    "masked_fill": lambda x, mask: snp.where(mask == 0, -1e9, x),
    "einsum": lambda x, y: snp.einsum("bqhd,bkhd->bhqk", x, y),
}


def make(task: Task) -> Case:
    """One row at one size."""
    inputs = [snp.asarray(x) for x in task.values]
    differentiated, layer, call = task.differentiated, task.layer, task.row.call
    floats = [x for x, by in zip(inputs, differentiated) if by]
    rest = [x for x, by in zip(inputs, differentiated) if not by]
    module = None if layer is None else built(layer, "float32")
    parameters, buffers = {}, {}
    if module is not None:
        module.train(task.row.training)
        parameters = {
            name: snp.asarray(parameter(name, x.shape)) for name, x in module.named_parameters()
        }
        buffers = dict(module.named_buffers())
    name = task.row.target
    function = OPERATIONS.get(name) or getattr(functional, name, None)
    through = getattr(functional, task.row.through) if task.row.through else None

    def apply(floats: Any, parameters: Any, rest: Any, buffers: Any, key: Any) -> Any:
        """Outputs, and running statistics as the call leaves them."""
        one, other = iter(floats), iter(rest)
        args = task.arranged([next(one if by else other) for by in differentiated])
        if through:
            args = (through(args[0], -1), *args[1:])
        with nn.keys(key):
            if module is None:
                assert function is not None
                return tree.leaves(function(*args, **task.options)), {}
            output, buffers = st.func.functional_call(
                module, {**parameters, **buffers}, args, dict(call), return_buffers=True
            )
        return tree.leaves(output), buffers if task.row.training else {}

    def gradient(floats: Any, parameters: Any, rest: Any, buffers: Any, key: Any, ct: Any) -> Any:
        outputs, back, buffers = st.vjp(
            lambda floats, parameters: apply(floats, parameters, rest, buffers, key),
            floats,
            parameters,
            has_aux=True,
        )
        return outputs, buffers, back(ct)

    arguments = (floats, parameters, rest, buffers, st.random.PRNGKey(0))
    run = st.jit(apply)
    if task.kind == "gradient":
        outputs, _ = st.eval_shape(apply, *arguments)
        arguments += (list(map(snp.asarray, cotangents([x.shape for x in outputs]))),)
        run = st.jit(gradient)
    return Case(lambda: st.block_until_ready(run(*arguments)), partial(results, task))


def results(task: Task, found: Any) -> list[NDArray[Any]]:
    """What is compared, in the order of all frameworks."""
    outputs, buffers, *gradients = found
    arrays = list(outputs)
    for floats, parameters in gradients:
        arrays += [*floats, *[x for _, x in sorted(parameters.items())]]
    arrays += [x for _, x in sorted(buffers.items()) if x.dtype == np.float32]
    return compared(task, list(map(np.asarray, arrays)))


cases = registry("stretto", make)


if __name__ == "__main__":
    serve("stretto", ["stretto", "jaxlib", "numpy"], "import stretto", cases)
