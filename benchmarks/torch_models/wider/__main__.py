"""The command: what comes in of many architectures, and whether it is right.

What was found of a model is written down at once, so that a run that is interrupted goes on where
it was, and ``--again`` tries once more what was not right. ``tools/make_pytorch_modules.py`` makes
a page of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

import stretto as st
from benchmarks.torch_models.wider.catalogue import chosen
from benchmarks.torch_models.wider.survey import survey

__all__ = ["RESULTS", "main"]

RESULTS = Path(__file__).parent / "results.json"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if nothing differs, and nothing fails."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.torch_models.wider", description=__doc__
    )
    parser.add_argument("--only", metavar="NAME,…", help="models whose names begin so")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results are kept")
    parser.add_argument("--again", metavar="VERDICT,…", help="those that came out so, once more")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    st.config.enable_x64 = True
    results = _read(options.json)
    again = tuple((options.again or "").split(","))
    for model in chosen((options.only or "").split(",")):
        if model.name not in results or results[model.name]["verdict"] in again:
            found = survey(model)
            entry = {**dataclasses.asdict(found), "verdict": found.verdict}
            results = {**_read(options.json), model.name: entry}
            options.json.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", "utf-8")
            print(_line(model.name, entry), flush=True)
    bad = [name for name, found in results.items() if found["verdict"] in ("differs", "failed")]
    print(f"{len(results)} models; {len(bad)} differ or fail: {', '.join(bad)}")
    return 1 if bad else 0


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def _line(name: str, found: dict[str, Any]) -> str:
    parts = []
    for use, finding in found["findings"].items():
        wrong = finding["verdict"] != "right"
        said = f"{finding['verdict']} ({finding['detail']})" if wrong else f"{finding['error']:.0e}"
        parts.append(f"{use} {said}")
    return f"{name:32} {found['seconds']:5.1f} s  {'; '.join(parts)}"


if __name__ == "__main__":
    sys.exit(main())
