"""``autograd.Function``s in a trace: what they compute, with their ``backward`` beside it.

``torch.export`` traces the first and drops the second. Like ``capture`` this imports PyTorch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.autograd.function import FunctionCtx, _SingleLevelFunction  # pyright: ignore[reportMissingImports]
from torch.utils import checkpoint  # pyright: ignore[reportMissingImports]

from stretto.torch.marks import Unfit, fitted, is_smooth, line, name_of

__all__ = ["apply", "refuse_transformed"]

_INSIDE = ("torch._", "torch.masked.", "torch.nested.")
"""Where PyTorch has Functions of its own that are no part of a module's work."""

_ONCE = torch.autograd.function.once_differentiable(lambda: None).__code__


class _Context(FunctionCtx):
    """What ``forward`` leaves for ``backward``."""

    def __init__(self, of: type, args: Sequence[Any]) -> None:
        self._forward_cls = of
        self.to_save: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.needs_input_grad = tuple([is_smooth(x) for x in args])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` was given."""
        return tuple(self.to_save)


class _Rule(torch.autograd.Function):
    """Makes results of a traced Function, with its own ``backward`` for who differentiates here."""

    @staticmethod
    def forward(ctx: Any, make: Callable[[], Any], back: Callable[..., Any], *_: Any) -> Any:
        ctx.back = back
        return tuple(make())

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None, None, *ctx.back(cotangents))


def _original(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return super(_SingleLevelFunction, cls).apply(*args, **kwargs)


def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a Function; its ``backward`` is traced beside it, and ``with_backward`` joins them."""
    if cls is checkpoint.CheckpointFunction:  # it recomputes, and has the function's gradient
        return args[0](*args[2:])
    if cls is _Rule or cls.__module__.startswith(_INSIDE):
        return _original(cls, *args, **kwargs)
    apart = cls.setup_context is not _SingleLevelFunction.setup_context
    args = _bound(cls.forward, () if apart else (None,), args, kwargs)
    context = _Context(cls, args)
    before = [x.clone() if is_smooth(x) else x for x in args]  # forward may write into its inputs
    with torch.no_grad():
        if apart:
            results = cls.forward(*args)
            cls.setup_context(context, args, results)
        else:
            results = cls.forward(context, *args)
    if not torch.is_grad_enabled():
        return results
    dirty, fixed = _identities(context.dirty_tensors), _identities(context.non_differentiable)
    inputs = [b if id(x) in dirty else x for x, b in zip(args, before, strict=True)]
    parts = results if isinstance(results, tuple) else (results,)
    moving = [k for k, x in enumerate(parts) if is_smooth(x) and id(x) not in fixed]
    kept_results = _joined(cls, context, inputs, parts, moving)
    if not isinstance(results, tuple):
        return _given(parts[0], kept_results.get(0), dirty)
    return tuple([_given(x, kept_results.get(k), dirty) for k, x in enumerate(parts)])


def _bound(
    forward: Callable[..., Any], lead: tuple[Any, ...], args: tuple[Any, ...], kwargs: Any
) -> tuple[Any, ...]:
    """All arguments of a ``forward`` by position, but for those before them."""
    if not kwargs:
        return args
    bound = inspect.signature(forward).bind(*lead, *args, **kwargs)
    if bound.kwargs:  # behind one that was left out
        bound.apply_defaults()
    return bound.args[len(lead) :]


def _identities(tensors: Sequence[Any]) -> set[int]:
    return {id(x) for x in tensors}


def _given(plain: Any, joined: Any, dirty: set[int]) -> Any:
    """A result as the caller gets it."""
    if joined is None:
        fresh = isinstance(plain, torch.Tensor) and id(plain) not in dirty
        return plain.detach() if fresh else plain
    return plain.copy_(joined) if id(plain) in dirty else joined


def _joined(
    cls: Any, context: Any, inputs: Sequence[Any], results: Sequence[Any], moving: Sequence[int]
) -> dict[int, Any]:
    """The results that have a derivative, by their numbers."""
    smooth = [k for k, x in enumerate(inputs) if is_smooth(x)]
    if not smooth or not moving:
        return {}
    detached = {k: results[k].detach() for k in moving}
    seeds = {k: torch.ops.stretto.cotangent(x) for k, x in detached.items()}
    cotangents = [
        seeds[k].clone()  # which backward may write into
        if k in seeds
        else torch.zeros_like(x)
        if isinstance(x, torch.Tensor)
        else None
        for k, x in enumerate(results)
    ]
    name = name_of(cls)
    backward = cls.backward if cls.backward is not torch.autograd.Function.backward else cls.vjp

    def back(cotangents: Sequence[Any]) -> list[Any]:
        given = [list(cotangents)] if cls.boxed_grads_call else cotangents
        return fitted(name, backward(context, *given), inputs)

    try:
        gradients = back(cotangents)
    except Unfit:
        raise
    except Exception as error:
        raise Unfit(
            f"from_torch: the backward of the autograd.Function {name}, applied in {line()}, "
            f"cannot be traced, and without it the gradients would be others than PyTorch's: "
            f"{type(error).__name__}: {error}. Write it with PyTorch's operations on what "
            f"ctx.saved_tensors and the gradients hold, or apply the Function under torch.no_grad()"
        ) from error
    pairs = [(inputs[k], gradients[k]) for k in smooth if gradients[k] is not None]
    if not pairs:
        return {}
    arguments = (
        name,
        _is_once(backward),
        [x for x, _ in pairs],
        [results[k] for k in moving],
        [seeds[k] for k in moving],
        [gradient for _, gradient in pairs],
    )

    def all_results(cts: Sequence[Any]) -> list[Any]:
        full = list(cotangents)
        for k, ct in zip(moving, cts, strict=True):
            full[k] = ct
        slopes = back(full)
        return [slopes[k] for k in smooth]

    made = _original(
        _Rule,
        lambda: torch.ops.stretto.with_backward(*arguments),
        all_results,
        *[inputs[k] for k in smooth],
    )
    return dict(zip(moving, made, strict=True))


def _is_once(function: Any) -> bool:
    """Whether a ``backward`` must not be differentiated (``once_differentiable``)."""
    while function is not None:
        if getattr(function, "__code__", None) is _ONCE:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def refuse_transformed(cls: Any, *_: Any, **__: Any) -> Any:
    """Refuse a Function that is applied where ``torch.func`` transforms."""
    raise Unfit(
        f"from_torch: the autograd.Function {name_of(cls)} is applied inside a transformation "
        f"of torch.func, in {line()}: its derivative cannot come in from there; apply it outside"
    )
