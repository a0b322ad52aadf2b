"""Export each network's outputs and a training step, run the files, and say how far off they are.

Run by ``make bench-export-steps``, or by hand:

    python -m benchmarks.export.steps --only tiny-gpt2 lstm --optimizers adam

What onnxruntime computes in float32 is compared with what Stretto computes in float64; how far
Stretto's own float32 is off stands beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

import stretto as st
import stretto.numpy as snp
from benchmarks import ensembles_stretto, workloads_ensembles
from benchmarks.export.__main__ import count
from benchmarks.networks import cases_stretto, table
from stretto import export, optim

__all__ = ["OPTIMIZERS", "Case", "cases", "compared", "main", "step_of"]

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optim.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optim.adam(1e-3),
    "adamw": lambda: optim.adamw(1e-3, weight_decay=1e-2),
}
SECOND = 1e-4
"""Where second moments begin: a first update of Adam would be the sign of a gradient near 0."""
FACTOR, LEAST = 4.0, 1e-5
"""How far off a file may be: so many times Stretto's own float32, or this much."""


class Case(NamedTuple):
    """A function to export, and what it is called with, in float32."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    held: bool = False
    """Whether the first argument, the weights, is part of the file."""


def step_of(loss: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """Return one update: the new model and state, and the loss before it."""

    def step(model: Any, state: Any, *data: Any) -> dict[str, Any]:
        value, slopes = st.value_and_grad(loss)(model, *data)
        updates, state = optimizer.update(slopes, state, model)
        return {"model": optim.apply_updates(model, updates), "state": state, "loss": value}

    return step


def begun(optimizer: Any, model: Any) -> Any:
    """Return an optimizer's state, with second moments that are not 0."""

    def warm(part: Any) -> Any:
        if not hasattr(part, "nu"):
            return part
        nu = st.tree.map(lambda x: snp.full_like(x, SECOND), part.nu)
        return part._replace(count=snp.full_like(part.count, 10), nu=nu)

    return st.tree.map(warm, optimizer.init(model), is_leaf=lambda x: hasattr(x, "nu"))


def cases(optimizers: list[str]) -> Iterator[tuple[str, Callable[[], Case]]]:
    """Return what can be measured, by name."""
    for network in [*table.TINY, *table.NETWORKS]:
        for task in network.tasks:
            if task.kind != "step":
                yield task.name, partial(of_task, task)
                continue
            for name in optimizers:
                yield f"{task.name}-{name}", partial(of_step, task, name)
    for task in workloads_ensembles.all_tasks():
        yield task.name, partial(of_ensemble, task)


def of_task(task: table.Task) -> Case:
    """The outputs of a network, or one token, with a cache."""
    made = cases_stretto.program(task)
    return Case(task.name, made.function, made.arguments, held=True)


def of_step(task: table.Task, name: str) -> Case:
    """One update of a network, or of several at once."""
    optimizer = OPTIMIZERS[name]()
    (model, _), data = cases_stretto.program(task).arguments
    step = step_of(cases_stretto.loss, optimizer)
    if task.members == 1:
        return Case(f"{task.name}-{name}", step, (model, begun(optimizer, model), *data))
    state = st.vmap(partial(begun, optimizer))(model)
    return Case(f"{task.name}-{name}", st.vmap(step), (model, state, *data))


def of_ensemble(task: workloads_ensembles.Task) -> Case:
    """A row of the ensembles: outputs, gradients or an update by AdamW."""
    return Case(task.name, *ensembles_stretto.program(task))


def distance(got: Any, exact: Any) -> dict[str, float]:
    """Return how far the leaves of results are off, by the part of the result: the furthest.

    Norms of differences are in units of the norm; the smallest leaves, such as the gradients that
    are 0 but for rounding, in a thousandth of the largest of their part.
    """
    of_step = isinstance(exact, dict) and "loss" in exact
    parts, ours = (exact, got) if of_step else ({"outputs": exact}, {"outputs": got})
    found: dict[str, float] = {}
    for name, part in parts.items():
        pairs = list(zip(map(np.asarray, st.tree.leaves(ours[name])),
                         map(np.asarray, st.tree.leaves(part)), strict=True))  # fmt: skip
        mean = [float(np.sqrt(np.mean(np.square(w, dtype=np.float64)))) for _, w in pairs]
        least = 1e-3 * max(mean)
        off = [
            float(np.sqrt(np.mean(np.square(g.astype(np.float64) - w)))) / (m + least)
            for (g, w), m in zip(pairs, mean, strict=True)
            if w.dtype.kind == "f" and m + least
        ]
        found[name] = max(off, default=0.0)
    return found


def in_float64(function: Callable[..., Any], arguments: Any) -> Any:
    """Return the result for the same numbers in float64."""
    with st.enable_x64():
        wide = lambda x: snp.asarray(x, "float64") if np.asarray(x).dtype == np.float32 else x
        return st.tree.map(np.asarray, function(*st.tree.map(wide, arguments)))


def relative(result: Any, arguments: Any) -> Any:
    """Return a result with the change of the model in place of the new one."""
    if not isinstance(result, dict) or "model" not in result:
        return result
    change = lambda new, old: np.asarray(new, np.float64) - np.asarray(old)
    return {**result, "model": st.tree.map(change, result["model"], arguments[0])}


def compared(case: Case) -> dict[str, Any]:
    """Export, run and compare a case."""
    row: dict[str, Any] = {"name": case.name}
    began = time.process_time()
    function, arguments = case.function, case.arguments
    if case.held:
        weights, *arguments = case.arguments
        function = lambda *data: case.function(weights, *data)
    model = export.onnx(function, *arguments)
    row["seconds"] = time.process_time() - began
    if model.ByteSize() < 1 << 29:
        onnx.checker.check_model(model, full_check=True)
    row["nodes"] = count(model.graph)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    names = [i.name for i in model.graph.input]
    outputs = [o.name for o in model.graph.output]
    content = model.SerializeToString()
    del model
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    del content
    values = [np.asarray(snp.asarray(x)) for x in st.tree.leaves(arguments)]
    got = session.run(outputs, dict(zip(names, values, strict=True)))
    own = case.function(*case.arguments)
    exact = in_float64(case.function, case.arguments)
    structure = st.tree.structure(own)
    result = st.tree.unflatten(structure, got)
    base = relative(exact, case.arguments)
    row["file"] = distance(relative(result, case.arguments), base)
    row["own"] = distance(relative(own, case.arguments), base)
    row["right"] = all(
        row["file"][part] <= max(LEAST, FACTOR * row["own"][part]) for part in row["file"]
    )
    return row


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if a file is further off than it may be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export.steps", description=__doc__)
    parser.add_argument("--only", nargs="*", default=["tiny-"], metavar="BEGINNING")
    parser.add_argument("--optimizers", nargs="*", default=[*OPTIMIZERS], choices=[*OPTIMIZERS])
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    made = Table(title="how far off: the file, and in brackets Stretto's own float32")
    for head in ("case", "nodes", "seconds", "outputs or loss", "state", "change of the model", ""):
        made.add_column(head, justify="left" if head == "case" else "right")
    failed = 0
    for name, make in cases(options.optimizers):
        if not name.startswith(tuple(options.only)):
            continue
        try:
            row = compared(make())
        except Exception as error:  # the rest is of interest, whatever it is
            console.print(f"{name}: {type(error).__name__}: {error}", markup=False)
            failed += 1
            continue
        failed += not row["right"]
        made.add_row(*cells(row))
        console.print(*cells(row), style="dim")
    console.print(made)
    return int(failed > 0)


def cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row of the table."""

    def show(part: str) -> str:
        return f"{row['file'][part]:.1e} ({row['own'][part]:.1e})" if part in row["file"] else ""

    figures = [show("outputs") or show("loss"), show("state"), show("model")]
    verdict = "" if row["right"] else "too far"
    return [row["name"], str(row["nodes"]), f"{row['seconds']:.1f}", *figures, verdict]


if __name__ == "__main__":
    sys.exit(main())
