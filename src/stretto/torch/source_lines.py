"""Find the line of a module that an error of ours is about, and write it.

A stack has frames of PyTorch, of this package and of Python's library around those of a module.
This file imports PyTorch, to know which files are PyTorch's.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Iterable

import torch  # pyright: ignore[reportMissingImports]

PYTORCH = os.path.dirname(str(torch.__file__)) + os.sep
_STRETTO = os.path.dirname(os.path.dirname(__file__)) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_INSTALLED = sysconfig.get_paths()["purelib"] + os.sep
_PASSING = ("__torch_function__", "__torch_dispatch__")


def is_of_module(file: str) -> bool:
    """Say whether a file is none of PyTorch's, of ours, or of Python's own."""
    standard = file.startswith(_STANDARD) and not file.startswith(_INSTALLED)
    return not standard and not file.startswith((PYTORCH, _STRETTO, "<"))


def last_of_module(frames: Iterable[traceback.FrameSummary]) -> traceback.FrameSummary | None:
    """Return the last frame of a module, if there is any.

    A mode of PyTorch's, through which each operation goes, is none.
    """
    own = [x for x in frames if is_of_module(x.filename) and x.name not in _PASSING]
    return own[-1] if own else None


def written(frame: traceback.FrameSummary) -> str:
    """Return the file, the line and the function of a frame, as errors name it.

    Files of PyTorch, whose folder says nothing to a user, go by their last part.
    """
    ours = frame.filename.startswith(PYTORCH)
    file = os.path.basename(frame.filename) if ours else frame.filename
    return f"{file}, line {frame.lineno}, in {frame.name}"


def current_line() -> str:
    """Return the line of the module's code that is being run."""
    frame = last_of_module(traceback.extract_stack())
    return "code without a file" if frame is None else written(frame)
