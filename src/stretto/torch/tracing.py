"""What PyTorch's exporter traces only with help: shapes that it does not know.

Some shapes depend on values in PyTorch, though for what modules use of the results they need not.
They are known while ``traceable`` lasts. This module imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._subclasses import fake_impls  # pyright: ignore[reportMissingImports]

__all__ = ["CALLED", "traceable"]

_ATEN = torch.ops.aten


@contextmanager
def traceable() -> Iterator[None]:
    """Let PyTorch trace these operations."""
    known = fake_impls.op_implementations_dict
    before = {op: known[op] for op in _SHAPES if op in known}
    known.update({op: _shaped(shape, before.get(op)) for op, shape in _SHAPES.items()})
    try:
        yield
    finally:
        for op in _SHAPES:
            known.pop(op, None)
        known.update(before)


def _with_lengths(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A loss that is given its lengths as tensors: numbers it turns into some that have no data."""

    def with_lengths(
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
        *more: Any,
        **how: Any,
    ) -> Any:
        lengths = [torch.as_tensor(n) for n in (input_lengths, target_lengths)]
        return loss(log_probs, targets, *lengths, *more, **how)

    return with_lengths


CALLED: dict[Any, Callable[..., Any]] = {
    torch.ctc_loss: _with_lengths(torch.ctc_loss),
    torch.nn.functional.ctc_loss: _with_lengths(torch.nn.functional.ctc_loss),
}
"""The substitutes of what makes tensors of numbers, which have no data while a trace lasts."""


def _shaped(shape: Callable[..., Any], otherwise: Any) -> Callable[..., Any]:
    """PyTorch's form of a rule for shapes; where ours gives None, PyTorch's own holds."""

    def shaped(mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        found = shape(*args, **kwargs)
        if found is None and otherwise is not None:
            return otherwise(mode, func, *args, **kwargs)
        return found

    return shaped


def _ctc_loss(
    log_probs: torch.Tensor, targets: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    batch = log_probs.shape[1:2] if log_probs.ndim == 3 else ()
    return log_probs.new_empty(batch), log_probs.new_empty(0)


def _lstsq(
    a: torch.Tensor, b: torch.Tensor, rcond: Any = None, *, driver: str | None = None
) -> tuple[torch.Tensor, ...]:
    rows, columns = a.shape[-2:]
    vector = b.ndim == a.ndim - 1
    batch = a.shape[:-2]
    several = () if vector else b.shape[-1:]
    real = a.real.dtype if a.is_complex() else a.dtype
    some = driver in ("gels", "gelsd", "gelss") and rows > columns
    singular = driver in ("gelsd", "gelss")
    return (
        b.new_empty((*batch, columns, *several)),
        b.new_empty((*batch, *(several or (1,))) if some else (0,)),
        b.new_empty((0,) if driver == "gels" else batch, dtype=torch.int64),
        b.new_empty((*batch, min(rows, columns)) if singular else (0,), dtype=real),
    )


def _bincount(
    x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor | None:
    """As many counts as ``minlength`` says."""
    if not minlength:
        return None
    if weights is None:
        return x.new_empty(minlength, dtype=torch.int64)
    kept = weights.dtype is torch.float32
    return x.new_empty(minlength, dtype=torch.float32 if kept else torch.float64)


_SHAPES: dict[Any, Callable[..., Any]] = {
    _ATEN._ctc_loss.default: _ctc_loss,
    _ATEN._ctc_loss.Tensor: _ctc_loss,
    _ATEN.bincount.default: _bincount,
    _ATEN.linalg_lstsq.default: _lstsq,
}
