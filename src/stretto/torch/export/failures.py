"""Errors of an export, in words: the line of a module that one is about, and the way out.

PyTorch's errors say what its tracing met; a user has to know which line of the module that is, and
what could stand there instead. A stack has frames of PyTorch, of this package and of Python's
library around those of a module. This file imports PyTorch, to know which files are PyTorch's.
"""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Iterable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

_CHOICE = (
    "which way it goes depends on the values of tensors. Compute both and choose by torch.where, "
    "or let torch.cond call one of two functions; leave a check out by torch.compiler.is_exporting"
)
_NUMBER = (
    "it makes a size, or a number of Python, of the values of tensors (.item(), int(), .tolist()). "
    "Keep it a tensor, or make it an argument that is a number, or a buffer that forward does not "
    "write to, which become part of the program"
)
_SCRIPTED = (
    "it calls a function or a module of TorchScript, which keeps no Python code to export: call "
    "what that was made of"
)
_PACKED = (
    "packed sequences have sizes that depend on the values of lengths. Pad the sequences, run the "
    "layer on the padded batch, and leave out what is past each length by torch.where, or gather "
    "the last valid step by its index"
)
_OWN = (
    "its own code raises this. Where a plain call does not, it asks whether it is exported "
    "(torch.compiler.is_compiling() and the like): give it the arguments, such as masks, that it "
    "does without then"
)
_REASONS = [
    (r"takes \d+ positional arguments? but \d+ w", _SCRIPTED),
    (
        r"Could not guard|data.dependent.*(control flow|branching)|"
        r"Boolean value of Tensor|not.*trace.*\bbool\b",
        _CHOICE,
    ),
    (r"data.dependent|unbacked|Unbacked|_local_scalar_dense|DataDependent", _NUMBER),
    (
        r"\.numpy\(\) is not supported|tensor subclasses|numpy",
        "it leaves PyTorch for NumPy; what NumPy computes is not exported. Use PyTorch's functions",
    ),
    (
        r"not a known type|Unsupported input type|unsupported.*input type",
        "an argument or a result is of a class of its own, of which PyTorch does not know what it "
        "holds. Use tuples and dictionaries, or register the class: a dataclass by "
        "torch.export.register_dataclass",
    ),
    (
        r"fake tensor in the exported program constant",
        "it makes a tensor where PyTorch's tracing does not see it, as by .data in a function that "
        "was traced before, or by a library of its own",
    ),
    (
        r"aten\.\S+|UnsupportedOperator",
        "an operation in it cannot be exported. Write it with others",
    ),
]
_MAKES_A_NUMBER = re.compile(r"\b(int|float|range)\(|\.(item|tolist)\(")
_FILES = {("nn", "utils", "rnn.py"): _PACKED, ("torch", "jit", "_script.py"): _SCRIPTED}
"""Files of PyTorch that an error came through, and what that means."""


def is_ours(error: BaseException) -> bool:
    """Say whether an error was raised here, and says all."""
    return str(error).startswith("from_torch")


def reason(error: BaseException, module: Any) -> str:
    """Return the note for an error of PyTorch's exporter: where in the module, and the way out."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    through = [
        words
        for file, words in _FILES.items()
        if any([frame.filename.endswith(os.path.join(*file)) for frame in frames])
    ]
    found = [words for pattern, words in _REASONS if re.search(pattern, text, re.DOTALL)]
    frame = last_of_module(frames)
    line = linecache.getline(frame.filename, frame.lineno or 0).strip() if frame else ""
    where = (f" at {written(frame)}" if frame else "") + (f", `{line}`" if line else "")
    if "pack" in line:
        through = [_PACKED]
    if found and found[0] is _CHOICE and _MAKES_A_NUMBER.search(line):
        found = [_NUMBER]
    own = bool(frames) and is_of_module(frames[-1].filename)
    words = [*through, *found, _OWN if own else "the error above says why"][0]
    return (
        f"from_torch: PyTorch cannot export this {type(module).__name__}{where}: {words}. "
        f"torch.export.export(module, args, kwargs, strict=False) shows the same."
    )


PYTORCH = os.path.dirname(str(torch.__file__)) + os.sep
_STRETTO = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
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
