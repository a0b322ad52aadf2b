"""Export programs as StableHLO, have IREE compile and run them, and count what agrees.

Run by ``make export-iree``, or by hand:

    python -m benchmarks.export_iree build/export-iree --iree .venv-export-iree/bin/python

First come the models of ``models``, then calls of the table of functions, of one dtype. What IREE
gives is held to what Stretto gives, within the table's tolerances. A line tells of each that does
not agree: whether it was not compiled, ended the process that ran it, or gave something else.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import pathlib
import pkgutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from benchmarks.export_iree.models import MODELS
from stretto import export
from stretto.export.stablehlo_artifact import node_of
from tests.functions import checks, entries, table

for _, name, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{name}")

SIDE = pathlib.Path(__file__).with_name("iree_side.py")
_AT_ONCE = 50
"""The files that are written before they are run."""


class Written(NamedTuple):
    """A file, and what it must give."""

    outs: list[np.ndarray]
    tolerance: float


def write(folder: pathlib.Path, name: str, fun: Any, examples: Any, axes: Any = None) -> list[Any]:
    """Write a portable artifact with arguments for it; return what it must give."""
    file = export.stablehlo(fun, *examples, dynamic_axes=axes)
    (folder / f"{name}.mlirbc").write_bytes(file.module)
    leaves, structure = st.tree.flatten(examples)
    _, order, _ = node_of((st.tree.unflatten(structure, range(len(leaves))), {}), "")
    inputs = [np.asarray(snp.asarray(leaves[k])) for k in order]  # as ``file.inputs`` has them
    np.savez(folder / f"{name}.npz", **{f"in{k}": x for k, x in enumerate(inputs)})
    return [np.asarray(x) for x in file.flat(inputs)]


def models(folder: pathlib.Path, only: str) -> Iterator[tuple[str, Written]]:
    """Write the models."""
    for name in MODELS:
        if name.startswith(only):
            case = MODELS[name]()
            yield name, Written(write(folder, name, *case), 4.0)


def functions(folder: pathlib.Path, only: str, most: int) -> Iterator[tuple[str, Written]]:
    """Write calls of the table of functions, in float32."""
    for function in sorted(table.ENTRIES):
        if not function.startswith(only):
            continue
        entry, done = table.ENTRIES[function], 0
        for dtype, _, ours, _, arrays, _ in checks.instances(entry):
            if dtype != "f32" or done >= most:
                continue
            done += 1
            name = f"{function}-{done}".replace(".", "_")
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    if not all([isinstance(o, st.Array) for o in checks.leaves(ours(*arrays))]):
                        continue
                    outs = write(folder, name, ours, arrays)
                except st.errors.ExportError as error:
                    print(name, f"not written: {error}"[:200], sep="\t")
                    continue
                except TypeError:  # it is of values, and cannot be traced
                    continue
            yield name, Written(outs, entry.tolerance)


def run(python: str, folder: pathlib.Path, names: list[str]) -> Iterator[tuple[str, str]]:
    """Have IREE run files; yield how each went, also where one ends the process."""
    left = list(names)
    while left:
        command = [python, SIDE, folder, *left]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                name, _, outcome = line.rstrip("\n").partition("\t")
                left.remove(name)
                yield name, outcome
        if left:
            yield left.pop(0), f"run: it ended the process, with status {process.returncode}"


def outcome_of(folder: pathlib.Path, name: str, written: Written) -> str:
    """Compare what IREE gave."""
    with np.load(folder / f"{name}.out.npz") as archive:
        outs = [archive[f"out{k}"] for k in range(len(archive.files))]
    if len(outs) != len(written.outs):
        return f"differs: {len(outs)} results of {len(written.outs)}"
    try:
        for got, want in zip(outs, written.outs, strict=True):
            checks.close(got, want, written.tolerance, name)
    except AssertionError as error:
        return f"differs: {error}"
    return "agrees"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export_iree", description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--iree", required=True, help="the Python of an environment with IREE")
    parser.add_argument("--only", default="", help="the beginning of the names of what is run")
    parser.add_argument("--most", type=int, default=1, help="the most calls of a function; 0: none")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for what, made in (
        ("models", models(options.folder, options.only)),
        ("calls of the table", functions(options.folder, options.only, options.most)),
    ):
        counts: Counter[str] = Counter()
        while written := dict(itertools.islice(made, _AT_ONCE)):
            for name, outcome in run(options.iree, options.folder, list(written)):
                found = outcome
                if outcome == "ok":
                    found = outcome_of(options.folder, name, written[name])
                counts[found.partition(":")[0]] += 1
                if found != "agrees" or what == "models":
                    print(name, " ".join(found.split())[:200], sep="\t", flush=True)
            print(f"{what}: {dict(counts)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
