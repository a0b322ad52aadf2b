"""Stretto's side: carries out cases, in float64 as they come and in float32 compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stretto as st
import stretto.numpy as snp
from benchmarks.parity.case import Case, Fixed, Layer, Step, changed, cotangent, is_float
from stretto import nn, tree
from stretto.nn import functional

__all__ = ["Arrays", "built", "initial_state", "program", "refusal", "steps"]

Arrays = Mapping[str, NDArray[Any]]

ANSWERS = (ValueError, TypeError, RuntimeError, NotImplementedError, LookupError)
"""Errors that say what is wrong with the arguments; another kind is a crash."""


def built(layer: Layer, dtype: str) -> nn.Module:
    """The module in that precision, and those among its arguments."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Layer):
            return make(leaf)
        return snp.array(leaf.array if isinstance(leaf, Fixed) else leaf)

    def make(layer: Layer) -> Any:
        args, kwargs = changed(layer.args, change), changed(layer.kwargs, change)
        return getattr(nn, layer.name)(*args, **kwargs)

    with nn.keys(st.random.PRNGKey(0)):
        return make(layer).to(dtype)


def initial_state(module: nn.Module) -> dict[str, NDArray[Any]]:
    """Names and arrays of a module as it was made."""
    return {name: np.asarray(value) for name, value in module.state_dict().items()}


def refusal(case: Case) -> str | None:
    """The error that Stretto raises too, if it does."""
    try:
        steps(case, "float64", compiled=False)
    except ANSWERS as error:
        return f"{type(error).__name__}: {error}"
    return None


def steps(
    case: Case, dtype: str, compiled: bool, state: Arrays | None = None
) -> list[dict[str, Any]]:
    """What each step gives: outputs, gradients, buffers; a layer begins with `state`."""
    module = None if isinstance(case.target, str) else built(case.target, dtype)
    if module is not None and state is not None:
        module.load_state_dict(state)
    results = []
    for step in case.steps:
        if module is not None:
            module.train(step.training)
        results.append(_step(case, module, step, dtype, compiled))
        for name, value in results[-1]["buffers"].items():
            owner, _, last = name.rpartition(".")
            assert module is not None
            module.get_submodule(owner).update_buffer(last, snp.array(value))
    return results


def program(
    case: Case, module: nn.Module | None, step: Step, dtype: str
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function of arrays, parameters and a key that gives all of a step, and these."""
    floats: list[Any] = []
    changed((step.args, step.kwargs), lambda leaf: floats.append(leaf) if is_float(leaf) else None)

    def call(arrays: list[Any], parameters: dict[str, Any]) -> tuple[list[Any], Any]:
        rest = iter(arrays)

        def change(leaf: Any) -> Any:
            if is_float(leaf):
                return next(rest)
            return snp.array(leaf.array.astype(dtype) if isinstance(leaf, Fixed) else leaf)

        args, kwargs = changed(step.args, change), changed(step.kwargs, change)
        if case.through:
            args = (getattr(functional, case.through)(args[0], -1), *args[1:])
        buffers: Any = {}
        if module is None:
            output = getattr(functional, str(case.target))(*args, **kwargs)
        else:
            output, buffers = st.func.functional_call(
                module, parameters, args, kwargs, return_buffers=True
            )
        leaves = tree.leaves(output)
        outputs = [leaf for leaf in leaves if snp.issubdtype(leaf.dtype, snp.floating)]
        others = [leaf for leaf in leaves if not snp.issubdtype(leaf.dtype, snp.floating)]
        return outputs, (others, buffers)

    def both(arrays: list[Any], parameters: dict[str, Any], key: Any) -> Any:
        with nn.keys(key):
            outputs, back, rest = st.vjp(call, arrays, parameters, has_aux=True)
        weights = [
            snp.array(cotangent(leaf.shape, position).astype(dtype))
            for position, leaf in enumerate(outputs)
        ]
        return outputs, rest, back(weights)

    arrays = [snp.array(x.astype(dtype)) for x in floats]
    parameters = {} if module is None else dict(module.named_parameters())
    return both, (arrays, parameters, st.random.PRNGKey(0))


def _step(
    case: Case, module: nn.Module | None, step: Step, dtype: str, compiled: bool
) -> dict[str, Any]:
    both, arguments = program(case, module, step, dtype)
    run = st.jit(both) if compiled else both
    outputs, (others, buffers), (gradients, by_name) = run(*arguments)
    return {
        "outputs": list(map(np.asarray, outputs)),
        "others": list(map(np.asarray, others)),
        "gradients": list(map(np.asarray, gradients)),
        "parameters": {name: np.asarray(value) for name, value in by_name.items()},
        "buffers": {name: np.asarray(value) for name, value in buffers.items()},
    }
