"""Exports by PyTorch, for sizes that vary where it can, and without its own logs and warnings.

What is tried in turn: an export that asks whether sizes are 1, one that takes for granted that they
are two or more, and one for the sizes of the example. PyTorch logs each operation that it failed to
follow, prints the graph that it had so far, and warns of deprecations in its own code; what a user
must know is in our errors.
"""

from __future__ import annotations

import dataclasses
import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim, ExportedProgram  # pyright: ignore[reportMissingImports]

from stretto.torch.export.constraints import Unchecked, asking_for_ones, conditions_of, relaxed
from stretto.torch.export.failure_reasons import is_ours
from stretto.torch.trace.recurrent_layers import not_unrolled

_LOCK = threading.Lock()
_blocks: list[object] = []
_levels: dict[logging.Logger, int] = {}


@contextmanager
def quiet() -> Iterator[None]:
    """Let PyTorch's exporter neither log, nor print, nor warn inside the block.

    Whoever sets ``TORCH_LOGS`` asked for the log, and gets it.
    """
    if os.environ.get("TORCH_LOGS"):
        with warnings.catch_warnings(action="ignore"):
            yield
        return
    _silence()
    try:
        printed: Any = _WithoutGraphs(sys.stderr)
        with warnings.catch_warnings(action="ignore"), redirect_stderr(printed):
            yield
    finally:
        _restore()


def _silence() -> None:
    """Raise the levels of PyTorch's loggers; those that are made later inherit from ``torch``."""
    with _LOCK:
        if not _blocks:
            names = [n for n in logging.root.manager.loggerDict if n.startswith("torch.")]
            for logger in map(logging.getLogger, ["torch", *names]):
                if logger.level != logging.NOTSET or logger.name == "torch":
                    _levels[logger] = logger.level
                    logger.setLevel(logging.CRITICAL + 1)
        _blocks.append(None)


def _restore() -> None:
    with _LOCK:
        _blocks.pop()
        if not _blocks:
            for logger, level in _levels.items():
                logger.setLevel(level)
            _levels.clear()


class _WithoutGraphs(io.TextIOBase):
    """Passes on what is written, but for the graphs that PyTorch's exporter prints."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Write the text, unless the exporter printed it."""
        if sys._getframe(1).f_globals.get("__name__") != "torch.export._trace":
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream behind this one."""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


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
