"""Derivatives that PyTorch's modules give by themselves: a ``backward`` of a Function, a hook.

``with_backward`` is no operation of PyTorch's: ``stretto.torch.derivatives`` marks with it where a
rule holds, and ``capture`` makes a graph of the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto._engine.core.interpreter import Value
from stretto._engine.higher_order.custom_jvp import custom_jvp
from stretto._engine.higher_order.custom_vjp import custom_vjp

__all__ = ["TABLE"]


def _with_backward(
    name: str,
    once: bool,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    residuals: Sequence[Any],
    gradients: Callable[..., Sequence[Any]],
) -> tuple[Any, ...]:
    """The outputs, whose derivative by the inputs is had from ``gradients``.

    ``gradients`` takes the outputs' cotangents and the residuals. Where a residual is an output,
    as of ``save_for_backward(y)``, its own derivative is this one as well.
    """
    kept = [k for k, x in enumerate(residuals) if isinstance(x, Value)]
    same = {n: j for n, k in enumerate(kept) for j, y in enumerate(outputs) if residuals[k] is y}

    def plain(inputs: Sequence[Any], outputs: Sequence[Any], arrays: Sequence[Any]) -> Any:
        return tuple(outputs)

    def forward(inputs: Sequence[Any], outputs: Sequence[Any], arrays: Sequence[Any]) -> Any:
        made = rule(inputs, outputs, arrays)
        saved = [made[same[n]] if n in same else x for n, x in enumerate(arrays)]
        return made, saved

    def backward(arrays: Sequence[Any], cotangents: Sequence[Any]) -> Any:
        if once:
            arrays, cotangents = _once(name, arrays, cotangents)
        known = list(residuals)
        for k, x in zip(kept, arrays, strict=True):
            known[k] = x
        # complex cotangents are the conjugates of PyTorch's
        results = gradients(*map(snp.conj, cotangents), *known)
        return tuple(map(snp.conj, results)), None, None

    plain.__name__ = plain.__qualname__ = name
    rule = custom_vjp(plain)
    rule.defvjp(forward, backward)
    return rule(tuple(inputs), tuple(outputs), [residuals[k] for k in kept])


def _once(name: str, arrays: Sequence[Any], cotangents: Sequence[Any]) -> Any:
    """The same values, which may not be differentiated."""

    def refuse(*_: Any) -> Any:
        raise NotImplementedError(
            f"{name}: its backward is once_differentiable in PyTorch, and a second derivative is "
            f"taken through it"
        )

    same = custom_jvp(lambda arrays, cotangents: (arrays, cotangents))
    same.defjvp(refuse)
    return same(list(arrays), list(cotangents))


TABLE: dict[str, Callable[..., Any]] = {"stretto.with_backward.default": _with_backward}
