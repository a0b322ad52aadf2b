"""PyTorch's side of a call: its results, its gradients, and both in float64."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.torch_samples.essence import of_any_phase, weights
from stretto.torch.crossing import to_numpy

__all__ = ["Asked", "as_array", "cloned", "mapped"]

_WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


@dataclasses.dataclass(frozen=True)
class Asked:
    """A function of PyTorch's, and what it is called with, by the order of names."""

    name: str
    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any]

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Asked:
        """Put the arguments by name in order."""
        return cls(name, function, args, dict(sorted(kwargs.items())))

    def results(self) -> tuple[list[Any], bool]:
        """Call it, and return its results, and whether it gives a list or tuple of them."""
        out = self.function(*self.args, **self.kwargs)
        several = isinstance(out, (tuple, list))
        return list(out) if several else [out], several

    def arrays(self) -> list[np.ndarray]:
        """Return the results as arrays of NumPy."""
        return [as_array(x) for x in self.results()[0]]

    def in_float64(self) -> Asked:
        """Return the same call with floats of 64 bits."""
        args, kwargs = _widened((self.args, self.kwargs))
        return Asked(self.name, self.function, args, kwargs)

    def of_sizes(self) -> Asked:
        """Return the call with the sizes of all elements in their places."""
        args, kwargs = mapped(torch.abs, (self.args, self.kwargs))
        return Asked(self.name, self.function, args, kwargs)

    def gradients(self) -> tuple[list[np.ndarray] | None, list[int]]:
        """Differentiate a combination of the results by all tensors of floats.

        Returns:
            The gradients, None if there are none; and which of the results have some.
        """
        leaves: list[Any] = []

        def leaf(x: Any) -> Any:
            inexact = x.is_floating_point() or x.is_complex()
            leaves.append(x.detach().clone().requires_grad_(inexact))
            return leaves[-1]

        args, kwargs = mapped(leaf, (self.args, self.kwargs))
        wrt = [x for x in leaves if x.requires_grad]
        try:
            with torch.enable_grad():
                outs, _ = Asked(self.name, self.function, args, kwargs).results()
                slopes = [
                    k for k, x in enumerate(outs) if isinstance(x, torch.Tensor) and x.requires_grad
                ]
                if not wrt or not slopes:
                    return None, slopes
                total = sum([_weighted(of_any_phase(self.name, k, outs[k]), k) for k in slopes])
                found = torch.autograd.grad(total, wrt, allow_unused=True)
        except (RuntimeError, NotImplementedError):  # it has no derivative
            return None, []
        full = [
            torch.zeros_like(x) if g is None else torch.zeros_like(x) + g
            for x, g in zip(wrt, found, strict=True)
        ]
        return [as_array(g) for g in full], slopes


def _weighted(x: Any, k: int) -> Any:
    total = (x * torch.from_numpy(weights(x.shape, k)).to(x.dtype)).sum()
    return total.real if total.is_complex() else total


def as_array(x: Any) -> np.ndarray:
    """Return a tensor or a number of Python as an array."""
    return to_numpy(x, "torch_samples") if isinstance(x, torch.Tensor) else np.asarray(x)


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to the tensors in lists, tuples and dictionaries."""
    if isinstance(tree, torch.Tensor):
        return f(tree)
    if type(tree) in (list, tuple):
        return type(tree)([mapped(f, x) for x in tree])
    if isinstance(tree, dict):
        return {k: mapped(f, v) for k, v in tree.items()}
    return tree


def cloned(tree: Any) -> Any:
    """Copy the dense tensors."""
    return mapped(lambda x: x.detach().clone() if x.layout is torch.strided else x, tree)


def _widened(tree: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        return tree.to(_WIDE.get(tree.dtype, tree.dtype))
    if isinstance(tree, torch.dtype):
        return _WIDE.get(tree, tree)
    if type(tree) in (list, tuple):
        return type(tree)([_widened(x) for x in tree])
    if isinstance(tree, dict):
        return {k: _widened(v) for k, v in tree.items()}
    return tree
