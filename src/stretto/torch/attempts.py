"""Exports by PyTorch, for sizes that vary where it can.

What is tried in turn: an export that asks whether sizes are 1, one that takes for granted that they
are two or more, and one for the sizes of the example.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim, ExportedProgram  # pyright: ignore[reportMissingImports]

from stretto.torch.constraints import Unchecked, asking_for_ones, conditions_of, relaxed
from stretto.torch.reasons import is_ours
from stretto.torch.recurrent import not_unrolled

__all__ = ["Export", "any_batch", "export"]


@dataclasses.dataclass(frozen=True)
class Export:
    """An exported program.

    Args:
        program: the program.
        least: the size from which on it holds: 1 if it asked for ones, or else 2.
    """

    program: ExportedProgram
    least: int


def any_batch(leaf: Any) -> Any:
    """The exporter's word for an axis 0 of any size."""
    several = isinstance(leaf, torch.Tensor) and leaf.ndim > 0 and leaf.shape[0] > 1
    return {0: Dim.AUTO} if several else None


def export(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Any, fix: bool
) -> Export:
    """Export for sizes that vary as ``shapes`` say, or for those of the example if that is None.

    ``fix`` allows the latter where PyTorch fails at the former. Raises what ``torch.export``
    raises.
    """

    def attempt(shapes: Any, least: int) -> Export:
        with asking_for_ones() if least == 1 else nullcontext(), not_unrolled():
            program = torch.export.export(
                module, tuple(args), dict(kwargs), dynamic_shapes=shapes, strict=False
            )
            conditions_of(program, least=least)
        return Export(program, least)

    attempts = [] if shapes is None else [(shapes, 1), (shapes, 2)]
    attempts += [(None, 2)] if fix else []
    error: Exception | None = None
    for asked, least in attempts:
        try:
            found = attempt(asked, least)
        except Exception as raised:
            if is_ours(raised) and not isinstance(raised, Unchecked):
                raise  # it will not come in in another way either
            error, raised.__cause__ = raised, error
            continue
        if fix or least == 1:
            return found
        try:  # names of dimensions may have been all that failed
            return attempt(relaxed(shapes), 1)
        except Exception:
            return found
    assert error is not None
    raise error
