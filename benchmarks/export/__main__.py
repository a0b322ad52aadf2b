"""Export the networks, and measure the files beside those that PyTorch exports.

Run by ``make bench-export``, or by hand:

    python -m benchmarks.export --peer-python .venv-bench/bin/python

PyTorch's files are made by a process in an environment of its own, which has ``onnxscript``. All
files are run here by onnxruntime, in one process, in turns, with the same number of threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

import stretto as st
from benchmarks.export.models import MEMBERS, MODELS, Model
from stretto import export, nn

__all__ = ["main"]

KINDS = ("torch", "fast", "exact")
"""Whose file: PyTorch's, ours with ``exact=False``, ours by default."""


def session(path: Path, threads: int) -> Any:
    """Return a session of a file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def example(model: Model, batch: int, seed: int = 0) -> np.ndarray:
    """Return an input: numbers, or tokens."""
    rng = np.random.default_rng(seed)
    shape = (batch, *model.shape)
    if model.tokens:
        return rng.integers(0, model.tokens, shape).astype(np.int32)
    return rng.standard_normal(shape).astype(np.float32)


def count(graph: Any) -> int:
    """Count nodes, those of graphs inside included."""
    inner = [a.g for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
    return len(graph.node) + sum(map(count, inner))


def figures(path: Path) -> dict[str, Any]:
    """Return what a file is like."""
    return {"nodes": count(onnx.load(path).graph), "bytes": path.stat().st_size}


def alternated(calls: dict[str, Any], seconds: float, threads: int) -> dict[str, float]:
    """Return the median milliseconds of each call, taken in turns.

    One thread is the caller's: its processor time is the call's, whatever else the machine does.
    """
    clock = time.thread_time if threads == 1 else time.perf_counter
    for call in calls.values():
        call()
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 7:
        for name, call in calls.items():
            begun = clock()
            call()
            times[name].append(clock() - begun)
    return {name: 1e3 * statistics.median(taken) for name, taken in times.items()}


def runner(s: Any, x: np.ndarray) -> Any:
    """Return a call that runs a session on an input, in the dtype that it takes."""
    (taken, *_) = s.get_inputs()
    if taken.type == "tensor(int64)":
        x = x.astype(np.int64)
    return lambda: s.run(None, {taken.name: x})


def measured(name: str, batch: int, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Export a network of ours, and measure all files of it."""
    model, x = MODELS[name], example(MODELS[name], batch)
    members = [model.make(nn).eval() for _ in range(MEMBERS if model.ensemble else 1)]
    ours = st.Ensemble(members) if model.ensemble else members[0]
    expected = np.asarray(ours(x))
    row: dict[str, Any] = {"name": name, "batch": batch}
    calls: dict[str, Any] = {}
    for kind in KINDS:
        path = folder / f"{kind}-{name}-{batch}.onnx"
        if kind != "torch":
            begun = time.process_time()
            export.onnx(ours, x, path=path, exact=kind == "exact")
            row[f"{kind}_seconds"] = time.process_time() - begun
        if not path.exists():
            continue
        calls[kind] = runner(session(path, options.threads), x)
        row |= {f"{kind}_{key}": value for key, value in figures(path).items()}
        if kind != "torch":
            (got,) = calls[kind]()
            scale = float(np.abs(expected).max())
            row[f"{kind}_error"] = float(np.abs(got - expected).max()) / scale
    if model.ensemble:
        sessions = []
        for k, member in enumerate(members):
            path = folder / f"member-{k}.onnx"
            export.onnx(member, x, path=path, exact=False)
            sessions.append(runner(session(path, options.threads), x))
        calls["files"] = lambda: [run() for run in sessions]
    row |= {
        f"{kind}_ms": ms for kind, ms in alternated(calls, options.seconds, options.threads).items()
    }
    return row


def table(rows: list[dict[str, Any]]) -> Table:
    """Return the figures beside PyTorch's, as ratios."""
    made = Table(title="ours / PyTorch's, ours in brackets by default (exact)")
    made.add_column("network")
    for head in (
        "batch",
        "nodes",
        "bytes",
        "time",
        "PyTorch ms",
        "of ten files",
        "error",
        "seconds",
    ):
        made.add_column(head, justify="right")
    for row in rows:

        def ratio(key: str, row: dict[str, Any] = row) -> str:
            whole = row.get(f"torch_{key}")
            if not whole:
                return f"{row[f'fast_{key}']:.3g} ({row[f'exact_{key}']:.3g})"
            return f"{row[f'fast_{key}'] / whole:.2f} ({row[f'exact_{key}'] / whole:.2f})"

        files = row.get("files_ms")
        made.add_row(
            row["name"],
            str(row["batch"]),
            ratio("nodes"),
            ratio("bytes"),
            ratio("ms"),
            f"{row.get('torch_ms', 0):.3f}",
            f"{row['fast_ms'] / files:.2f} ({row['exact_ms'] / files:.2f})" if files else "",
            f"{row['fast_error']:.1e} ({row['exact_error']:.1e})",
            f"{row['fast_seconds']:.1f}",
        )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if values are further off than 1e-5 of the largest."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export", description=__doc__)
    parser.add_argument("--peer-python", help="the Python that has PyTorch and onnxscript")
    parser.add_argument("--only", nargs="*", default=[*MODELS], choices=[*MODELS], metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a row is measured")
    parser.add_argument("--folder", type=Path, help="where files go, and PyTorch's may be already")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 180)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        pairs = [(name, batch) for name in options.only for batch in MODELS[name].batches]
        if options.peer_python:
            words = [str(w) for pair in pairs for w in pair]
            command = [options.peer_python, "-m", "benchmarks.export.torch_worker"]
            done = subprocess.run(
                [*command, str(folder), *words], stdout=subprocess.PIPE, text=True, check=True
            )
            for line in done.stdout.splitlines():
                found = json.loads(line.removeprefix("RESULT ")) if "RESULT" in line else {}
                if "error" in found:
                    console.print(f"PyTorch does not export {found['name']}: {found['error']}")
        rows = []
        for name, batch in pairs:
            rows.append(measured(name, batch, folder, options))
            console.print(f"{name} {batch}", style="dim")
        console.print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(any(row[f"{kind}_error"] > 1e-5 for row in rows for kind in KINDS[1:]))


if __name__ == "__main__":
    sys.exit(main())
