"""What PyTorch's exporter traces only with help: shapes that it does not know, sparse tensors.

Some shapes depend on values in PyTorch, though for what modules use of the results they need not.
They are known while ``traceable`` lasts. This module imports PyTorch. Next, read ``capture``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch._subclasses import fake_impls  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportMissingImports]

from stretto.torch.crossing import dense
from stretto.torch.densely import OF_LAYOUTS, SUBSTITUTES

__all__ = ["traceable"]

_ATEN = torch.ops.aten


@contextmanager
def traceable(densely: bool = False) -> Iterator[None]:
    """Let PyTorch trace these operations; ``densely`` where dense tensors are for sparse ones."""
    known = fake_impls.op_implementations_dict
    before = {op: known[op] for op in _SHAPES if op in known}
    known.update({op: _shaped(shape, before.get(op)) for op, shape in _SHAPES.items()})
    try:
        with _Substitutes(densely):
            yield
    finally:
        for op in _SHAPES:
            known.pop(op, None)
        known.update(before)


class _Substitutes(TorchFunctionMode):
    """Calls what can be traced in the place of what cannot, on dense tensors."""

    def __init__(self, densely: bool) -> None:
        super().__init__()
        self._densely = densely
        self._dense: dict[int, tuple[Any, Any]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if self._densely and func in OF_LAYOUTS and not _is_pytorchs(sys._getframe(1)):
            OF_LAYOUTS[func]()
        substitute: Any = _SUBSTITUTES.get(func, func)
        args, kwargs = [self._in_full(x) for x in args], kwargs or {}
        return substitute(*args, **{name: self._in_full(x) for name, x in kwargs.items()})

    def _in_full(self, x: Any) -> Any:
        """A dense tensor for a sparse one, always the same."""
        if type(x) is list or type(x) is tuple:
            return type(x)(map(self._in_full, x))
        if not isinstance(x, torch.Tensor) or x.layout is torch.strided:
            return x
        if id(x) not in self._dense:
            with _disable_current_modes():  # a function's own constant, which is not traced
                self._dense[id(x)] = x, dense(x)
        return self._dense[id(x)][1]


def _is_pytorchs(frame: FrameType | None) -> bool:
    """Whether PyTorch itself asks, behind its own modes: its exporter looks at layouts, too."""
    while frame is not None and frame.f_code.co_name == "__torch_function__":
        frame = frame.f_back
    return frame is None or frame.f_globals.get("__name__", "").partition(".")[0] == "torch"


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


_SUBSTITUTES = SUBSTITUTES | {
    torch.ctc_loss: _with_lengths(torch.ctc_loss),
    torch.nn.functional.ctc_loss: _with_lengths(torch.nn.functional.ctc_loss),
}


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
