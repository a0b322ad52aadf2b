"""Silence about PyTorch's internals while it exports: what a user must know is in our errors.

PyTorch logs each operation that it failed to follow, prints the graph that it had so far, and warns
of deprecations in its own code.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

__all__ = ["quiet"]

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
