"""Export each layer and function of ``nn``, with its derivatives, and compare what the files give.

Run by ``make bench-export-steps``, or by hand:

    python -m benchmarks.export.layers --only lstm gelu --opset 21 --count 5

The cases are those of the comparison with PyTorch (``benchmarks/parity``): a call in evaluation or
training mode, with a key for what is random, its gradients by all arguments and parameters, and
the new values of buffers, as one file.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime

from benchmarks.parity import ours
from benchmarks.parity.case import Case
from benchmarks.parity.families import FAMILIES, cases_of
from stretto import export, tree
from stretto.errors import ExportError

__all__ = ["main", "outcome"]

TOLERANCE = 2e-5
"""Of the largest element of a result: sums of float32 in another order differ by some 1e-6."""


def outcome(case: Case, opset: int = 26) -> tuple[str, str]:
    """Say what became of a case: "agrees", "refused" or "differs", and why."""
    module = None if isinstance(case.target, str) else ours.built(case.target, "float32")
    for step in case.steps:
        if module is not None:
            module.train(step.training)
        function, arguments = ours.program(case, module, step, "float32")
        want = tree.leaves(function(*arguments))
        if not want:
            continue
        try:
            model = export.onnx(function, *arguments, opset=opset)
        except ExportError as error:
            return "refused", str(error)
        onnx.checker.check_model(model, full_check=True)
        why = _differs(model, tree.leaves(arguments), want)
        if why:
            return "differs", why
    return "agrees", ""


def _differs(model: Any, given: list[Any], want: list[Any]) -> str:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session: Any = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [i.name for i in session.get_inputs()]
    got = session.run(None, dict(zip(names, map(np.asarray, given), strict=True)))
    for name, g, w in zip([o.name for o in session.get_outputs()], got, want, strict=True):
        w = np.asarray(w)
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"{name} is {g.dtype}{list(g.shape)}, and {w.dtype}{list(w.shape)} here"
        scale = float(np.abs(w[np.isfinite(w)]).max(initial=0)) if w.dtype.kind == "f" else 0.0
        if not np.allclose(g, w, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
            off = np.abs(g.astype(np.float64) - w)
            return f"{name} is off by {np.nanmax(off):.3g} of {scale:.3g}"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if a case differs, or ends in an error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export.layers", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[*FAMILIES], choices=[*FAMILIES], metavar="NAME"
    )
    parser.add_argument("--count", type=int, default=3, help="how many cases of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, default=26)
    options = parser.parse_args(arguments)
    found: Counter[str] = Counter()
    for name in options.only:
        for k, case in enumerate(cases_of(name, options.count, options.seed)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if ours.refusal(case):
                    found["no call"] += 1
                    continue
                try:
                    what, why = outcome(case, options.opset)
                except Exception as error:
                    what, why = "error", f"{type(error).__name__}: {str(error)[:300]}"
            found[what] += 1
            if what != "agrees":
                print(f"{what}\t{name} {k}\t{why}", flush=True)
    print(f"opset {options.opset}: {dict(found)}")
    return int(found["differs"] + found["error"] > 0)


if __name__ == "__main__":
    sys.exit(main())
