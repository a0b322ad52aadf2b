"""The commands ``stretto run`` and ``stretto export``: exported programs from a shell.

``run`` computes a model's outputs for arrays in NumPy's files, ``export`` writes an artifact as an
ONNX model. Nothing that a file holds is executed but the program that ``export.load`` has checked;
ONNX models are run by onnxruntime, where it is installed.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np

from stretto import export
from stretto import numpy as snp
from stretto._engine.core.config import enable_x64
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import kind_of

_onnxruntime = LazyModule("onnxruntime")


def _reported(command: Callable[[argparse.Namespace], None]) -> Callable[..., int]:
    """Return the command; what is wrong with files and arguments is one line, and status 2."""

    @functools.wraps(command)
    def reported(options: argparse.Namespace) -> int:
        try:
            with enable_x64():  # arrays have the dtypes that files say
                command(options)
        except (ValueError, TypeError, OSError, EOFError, NotImplementedError, ImportError,
                MemoryError) as error:  # fmt: skip
            print(f"stretto {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        return 0

    return reported


@_reported
def run(options: argparse.Namespace) -> None:
    """Compute the outputs of a model, and write or print them."""
    model = _Onnx(options.model) if options.model.endswith(".onnx") else _Own(options.model)
    outputs = model.run(_inputs(options.input, model.types))
    if options.output is None:
        for name, x in outputs.items():
            print(f"{name}: {x.dtype.name}{list(x.shape)}\n{x}")
    elif options.output.endswith(".npz"):
        arrays: Any = outputs
        snp.savez(options.output, **arrays)
    elif len(outputs) == 1 and options.output.endswith(".npy"):
        snp.save(options.output, next(iter(outputs.values())))
    else:
        several = len(outputs) != 1
        raise ValueError(
            f"the model gives {', '.join(outputs)}: name an output file that ends in .npz"
            f"{', which holds several arrays' if several else ' or .npy'}"
        )


@_reported
def write(options: argparse.Namespace) -> None:
    """Write an artifact in another format."""
    if Path(options.out).suffix != ".onnx":
        raise ValueError(f"OUT must end in .onnx, got {options.out}")
    artifact = export.load(options.artifact)
    if not isinstance(artifact, export.Artifact):
        raise ValueError(
            f"{options.artifact} is a module of StableHLO, which is not written in other formats: "
            f"export the function that it was made of, by stretto.export.onnx"
        )
    export.onnx(artifact, path=options.out, opset=options.opset)


class _Own:
    """An artifact, or a module of StableHLO."""

    def __init__(self, path: str) -> None:
        self._program = export.load(path)
        self.types = {name: (t.shape, t.dtype) for name, t in self._program.inputs.items()}

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        outs = self._program.flat([inputs[name] for name in self.types])
        return dict(zip(self._program.outputs, map(np.asarray, outs), strict=True))


class _Onnx:
    """An ONNX model, in onnxruntime."""

    def __init__(self, path: str) -> None:
        if util.find_spec("onnxruntime") is None:
            raise ModuleNotFoundError(
                f"{path} is an ONNX model, which onnxruntime runs: pip install onnxruntime; or run "
                f"the artifact that it was exported from"
            )
        with open(path, "rb"):
            pass  # the system's own words where there is no such file
        try:
            self._session = _onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ValueError(f"{path}: onnxruntime cannot read it: {error}") from None
        self.types: dict[str, tuple[tuple[int | str, ...], np.dtype]] = {}
        for taken in self._session.get_inputs():
            if taken.type not in _DTYPES:
                raise ValueError(
                    f"{path}: its input {taken.name} is {taken.type}, which onnxruntime takes no "
                    f"arrays of NumPy for: run the artifact that it was exported from, or export "
                    f"a function that takes float32 and converts it"
                )
            self.types[taken.name] = tuple(taken.shape), _DTYPES[taken.type]

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        for name, (shape, dtype) in self.types.items():
            x = inputs[name]
            fits = len(shape) == x.ndim and all(
                [isinstance(n, str) or n == m for n, m in zip(shape, x.shape, strict=True)]
            )
            if x.dtype != dtype or not fits:
                of = ",".join(map(str, shape))
                got = ",".join(map(str, x.shape))
                raise ValueError(f"{name} must be {dtype.name}[{of}], got {x.dtype.name}[{got}]")
        names = [o.name for o in self._session.get_outputs()]
        try:
            return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))
        except Exception as error:
            raise ValueError(f"onnxruntime: {error}") from None


_DTYPES = {
    **{f"tensor({n})": np.dtype(n) for n in ("int8", "int16", "int32", "int64", "bool",
                                              "uint8", "uint16", "uint32", "uint64")},
    "tensor(float16)": np.dtype(np.float16),
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
}  # fmt: skip
"""What onnxruntime calls the dtypes that NumPy has."""


def _inputs(files: Sequence[str], types: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of files, by the names of inputs."""
    given: dict[str, Any] = {}
    for text in files:
        for name, x in _arrays(text, types):
            place = next((n for n in types if n not in given), None) if name is None else name
            if place in given:
                raise ValueError(f"{text}: the input {place} is there already")
            if place is None or place not in types:
                raise _no_input(text, "left" if place is None else place, types)
            given[place] = _converted(np.asarray(x), types[place][1], place)
    missing = [name for name in types if name not in given]
    if missing:
        raise ValueError(f"the inputs {', '.join(missing)} are missing: add --input NAME=FILE")
    return given


def _arrays(text: str, types: Mapping[str, Any]) -> list[tuple[str | None, Any]]:
    """Return what a file has, by name; None for the next input."""
    name = next((n for n in types if text.startswith(f"{n}=")), None)
    if name is None and "=" in text and not Path(text).exists():
        raise _no_input(text, text.rpartition("=")[0], types)
    loaded: Any = snp.load(text if name is None else text[len(name) + 1 :])
    if not isinstance(loaded, Mapping):
        return [(name, loaded)]
    if name is not None:
        raise ValueError(f"{text}: a .npz file has names of its own; write --input FILE.npz")
    return [(key, loaded[key]) for key in loaded]


def _no_input(text: str, place: str, types: Mapping[str, Any]) -> ValueError:
    has = ", ".join(types) or "none"
    return ValueError(f"{text}: there is no input {place} for it; the model has {has}")


def _converted(x: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """Return numbers of NumPy's widest kinds as the model takes them, if none is lost."""
    if x.dtype == dtype or kind_of(x.dtype) != kind_of(dtype) or x.dtype.itemsize < 8:
        return x
    narrow = x.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(narrow, x):
        raise ValueError(f"{name}: it has integers that do not fit in {dtype.name}")
    return narrow
