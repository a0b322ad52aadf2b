"""Marks in a trace of PyTorch's, at the places where a module gives a derivative by itself.

``with_backward`` stands for results whose derivative is had from the gradients that it names, which
are computed from ``cotangent``s; ``hooked`` says by what the gradient of a tensor is replaced. They
compute nothing of their own. Like ``capture`` this imports PyTorch.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

__all__ = ["Unfit", "fitted", "is_smooth", "is_traced", "line", "name_of"]

_MARKS = torch.library.Library("stretto", "FRAGMENT")
_MARKS.define("cotangent(Tensor x) -> Tensor")
_MARKS.define(
    "with_backward(str name, bool once, Tensor[] inputs, Tensor[] outputs, Tensor[] cotangents,"
    " Tensor[] gradients) -> Tensor[]"
)
_MARKS.define("hooked(str name, Tensor x, Tensor cotangent, Tensor gradient) -> Tensor")
_MARKS.impl("cotangent", torch.empty_like, "CompositeExplicitAutograd")
_MARKS.impl(
    "with_backward",
    lambda name, once, inputs, outputs, *_: [x.clone() for x in outputs],
    "CompositeExplicitAutograd",
)
_MARKS.impl("hooked", lambda name, x, *_: x.clone(), "CompositeExplicitAutograd")
torch.fx.node.has_side_effect(torch.ops.stretto.hooked.default)


class Unfit(NotImplementedError):
    """Says what of a module cannot come in, while it is traced."""


def is_traced(x: Any) -> bool:
    """Whether this is a tensor of a trace."""
    return isinstance(x, torch._subclasses.FakeTensor)


def is_smooth(x: Any) -> bool:
    """Whether this is a tensor that may have a gradient."""
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())


def line() -> str:
    """The line of the user's code that is being run."""
    skipped = (str(Path(str(torch.__file__)).parent), str(Path(__file__).parent))
    lines = [f for f in traceback.extract_stack() if not f.filename.startswith(skipped)]
    return f"{lines[-1].filename}, line {lines[-1].lineno}"


def name_of(thing: Any) -> str:
    """The name of a class or a function, or else of its class."""
    return getattr(thing, "__qualname__", type(thing).__name__).replace("<locals>.", "")


def fitted(name: str, given: Any, inputs: Sequence[Any]) -> list[Any]:
    """The gradients of a ``backward``, in the shapes and dtypes of the inputs."""
    gradients = list(given) if isinstance(given, (tuple, list)) else [given]
    while len(gradients) > len(inputs) and gradients[-1] is None:
        gradients.pop()
    if len(gradients) != len(inputs):
        raise ValueError(f"{name} has {len(inputs)} inputs, and backward gave {len(gradients)}")
    found = []
    for x, gradient in zip(inputs, gradients, strict=True):
        if gradient is None or not is_smooth(x):
            found.append(None)
            continue
        if gradient.is_complex() and not x.is_complex():
            gradient = gradient.real
        found.append(gradient.sum_to_size(x.shape).to(x.dtype))
    return found
