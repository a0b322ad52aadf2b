"""The other side: run in an environment that has IREE, and neither Stretto nor its tests.

``python iree_side.py FOLDER NAME...`` compiles ``NAME.mlirbc`` for this machine's processor, runs
it on the arrays of ``NAME.npz``, and writes what it gives to ``NAME.out.npz``. It prints a line for
each: the name, and "ok" or what went wrong where.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import numpy as np
from iree import runtime

COMPILER = pathlib.Path(sys.executable).with_name("iree-compile")
OPTIONS = (
    "--iree-input-type=stablehlo",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_SECONDS = 300
"""The most time to compile a file."""


class Failed(Exception):
    """What the compiler says."""


def compiled(path: pathlib.Path) -> bytes:
    """Compile a portable artifact."""
    out = path.with_suffix(".vmfb")
    try:
        done = subprocess.run(
            [COMPILER, *OPTIONS, path, "-o", out],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"not compiled in {_SECONDS} s") from None
    if done.returncode:
        found = re.search(r"error: (.*)", done.stderr)
        raise Failed(found[1] if found else f"the compiler ended with {done.returncode}")
    content = out.read_bytes()
    out.unlink()
    return content


def run(path: pathlib.Path) -> None:
    """Compile and run a file, and write its results."""
    with np.load(path.with_suffix(".npz")) as archive:
        inputs = [archive[f"in{k}"] for k in range(len(archive.files))]
    main = runtime.load_vm_flatbuffer(compiled(path), driver="local-sync").main
    outs = main(*inputs)
    outs = outs if isinstance(outs, tuple) else (outs,)
    results = {f"out{k}": np.asarray(x) for k, x in enumerate(outs)}
    np.savez(path.with_suffix(".out.npz"), **results)


def main() -> None:
    """Run each file of the command line."""
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for name in names:
        outcome = "ok"
        try:
            run(folder / f"{name}.mlirbc")
        except Failed as error:
            outcome = f"compile: {error}"
        except Exception as error:  # counted, by kind
            outcome = f"run: {type(error).__name__}: {error}"
        print(name, " ".join(outcome.split())[:300], sep="\t", flush=True)


if __name__ == "__main__":
    main()
