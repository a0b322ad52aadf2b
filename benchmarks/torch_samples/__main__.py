"""The command: PyTorch's samples of each operation, values and gradients, in float64 or float32.

It needs an environment with PyTorch and Stretto. Each operation that PyTorch has samples of is
called; each call that PyTorch dispatches meanwhile, and that the table has, is run here as well.
What an export keeps whole never comes to be dispatched, so those operations are exported.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from torch.testing._internal.common_methods_invocations import op_db

import stretto as st
from benchmarks.torch_samples.looking import (
    DTYPES,
    look_at_dispatched,
    look_at_exported,
    stays_whole,
)
from benchmarks.torch_samples.tallies import Tallies
from stretto.torch.table import TABLE

RECORDED = Path(__file__).parents[2] / "tests" / "torch" / "samples.json"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if all calls give what PyTorch gives, but for the known exceptions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_samples", description=__doc__)
    parser.add_argument("--only", default="", help="operations whose names begin so")
    parser.add_argument("--part", choices=["dispatched", "exported"], help="one of the two parts")
    parser.add_argument(
        "--floats", default="float64", choices=sorted(DTYPES), help="the floats of the samples"
    )
    parser.add_argument(
        "--record", action="store_true", help="keep some calls for the tests without PyTorch"
    )
    options = parser.parse_args(arguments)
    if options.record and options.floats != "float64":
        parser.error("--record keeps calls of float64: leave out --floats")
    warnings.filterwarnings("ignore")
    st.config.enable_x64 = options.floats == "float64"
    tallies = Tallies()
    for op in op_db:
        if op.name.startswith(options.only):
            if options.part != "exported":
                look_at_dispatched(op, options.floats, tallies)
            if options.part != "dispatched" and stays_whole(op):
                look_at_exported(op, options.floats, tallies)
    _print(tallies)
    if options.record:
        _record(tallies)
    return 1 if tallies.problems() else 0


def _print(tallies: Tallies) -> None:
    for line in (*tallies.problems(), *tallies.notes()):
        print(line)
    untouched = sorted(set(TABLE) - set(tallies.of))
    print(f"Not called, {len(untouched)}: {' '.join(untouched)}")
    missing = [f"{name} {count}" for name, count in tallies.missing.most_common(200)]
    print(f"Not in the table: {', '.join(missing)}")
    print(tallies.summary())


def _record(tallies: Tallies) -> None:
    """Write the calls that were kept, beside those of operations that were not called now."""
    kept: dict[str, list[Any]] = collections.defaultdict(list)
    for call in json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else ():
        kept[call["name"]].append(call)
    kept.update(
        {name: [{"name": name, **call} for call in calls] for name, calls in tallies.kept.items()}
    )
    lines = [json.dumps(call) for name in sorted(kept) for call in kept[name]]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
