"""Instructions and allocations of the hot paths: a busy machine counts them as an idle one does.

Run by `make counts`, or by hand:

    python -m benchmarks.counts                       # count, and compare with the file kept
    python -m benchmarks.counts --only 'jitted*'
    python -m benchmarks.counts --write               # make this the file kept
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.counts_worker import IMPORT, chosen
from benchmarks.process import ROOT, environment
from benchmarks.run import RESULTS
from stretto._engine.native import native

__all__ = [
    "FILE",
    "Counts",
    "compare",
    "functions_of",
    "instructions_of",
    "libraries_of",
    "main",
    "total_of",
]

FILE = RESULTS / "counts.json"

WORSE = 1.03
"""A figure grows by more than this factor before it is named."""

NOISE = {"instructions": 0.0, "held": 0.5, "garbage": 0.5, "peak": 64.0}
"""And by more than this: fractions of a block, and of a small object."""

PATIENCE = 900.0

Counts: TypeAlias = dict[str, dict[str, float]]
"""For each path, by the kind of figure."""


class CountingError(Exception):
    """Nothing could be counted; the message says why."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if nothing got worse, 1 if something did, 2 if nothing can be counted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counts", description=__doc__)
    parser.add_argument("--only", default="*", help="names of paths, or patterns, with commas")
    parser.add_argument(
        "--functions",
        type=int,
        default=0,
        metavar="N",
        help="for each path, also what each library spends, and the N functions that spend most",
    )
    parser.add_argument("--file", type=Path, default=FILE, help="the file kept (%(default)s)")
    parser.add_argument("--write", action="store_true", help="write what was counted to that file")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    patterns = options.only.split(",")
    paths = chosen(patterns)
    if not paths:
        parser.error(f"argument --only: no path is called {options.only}")
    try:
        counts, spenders = count([path.name for path in paths], options.functions)
    except CountingError as error:
        print(f"counts: {error}", file=sys.stderr)
        return 2
    kept = json.loads(options.file.read_text(encoding="utf-8")) if options.file.exists() else {}
    titles = {IMPORT: "import of the package", **{path.name: path.title for path in paths}}
    console.print(as_table(counts, kept.get("counts", {}), titles))
    for name, functions in spenders.items():
        console.print(f"{name}:", *functions, sep="\n  ", highlight=False, soft_wrap=True)
    about = describe()
    if kept and kept["made_with"] != about["made_with"]:
        made_with = ", ".join(f"{name} {version}" for name, version in kept["made_with"].items())
        console.print(f"Not compared: the file kept was made with {made_with}.", style="yellow")
        worse = []
    else:
        worse = compare(counts, kept.get("counts", {}))
    for line in worse:
        console.print(line, style="red", highlight=False, soft_wrap=True)
    if options.write:
        same = kept.get("made_with") == about["made_with"]
        merged = {**(kept["counts"] if same else {}), **counts}
        report = {**about, "titles": {**kept.get("titles", {}), **titles}, "counts": merged}
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        console.print(f"Written to {options.file}", highlight=False, soft_wrap=True)
    return 1 if worse and not options.write else 0


def count(names: Sequence[str], functions: int = 0) -> tuple[Counts, dict[str, list[str]]]:
    """The figures of these paths and of the import, and each path's most costly functions.

    Raises `CountingError` where it cannot be done.
    """
    if shutil.which("valgrind") is None:
        raise CountingError(
            "instructions are counted by Callgrind; install valgrind (apt install valgrind)"
        )
    # In this order: the first import of changed files writes their bytecode.
    allocations = json.loads(_worker([sys.executable], "allocations", names))
    instructions, spenders = _instructions(names, functions)
    counts: Counts = {name: {"instructions": n} for name, n in instructions.items()}
    for name, figures in allocations.items():
        counts[name] |= {kind: abs(round(figure, 1)) for kind, figure in figures.items()}
    return counts, spenders


def compare(counts: Counts, kept: Counts) -> list[str]:
    """What got worse, in words: figures that grew by more than 3 %."""
    lines = []
    for name, figures in counts.items():
        for kind, now in figures.items():
            before = kept.get(name, {}).get(kind)
            if before is not None and now > WORSE * before and now > before + NOISE[kind]:
                factor = f", {now / before - 1:.0%} more" if before else ""
                lines.append(f"worse: {name}: {kind}: {before:,.10g} → {now:,.10g}{factor}")
    return lines


def as_table(counts: Counts, kept: Counts, titles: Mapping[str, str]) -> Table:
    """A row for each path; behind the instructions how many of the kept ones they are."""
    table = Table(title="One time along each path", title_justify="left")
    for heading in ("path", "instructions", "of the kept", "blocks held", "garbage", "peak bytes"):
        table.add_column(heading, justify="left" if heading == "path" else "right")
    for name, figures_of_path in counts.items():
        before = kept.get(name, {}).get("instructions")
        share = f"{figures_of_path['instructions'] / before:.3f}" if before else ""
        figures = (figures_of_path.get(kind) for kind in ("held", "garbage", "peak"))
        cells = ("" if figure is None else f"{figure:,.10g}" for figure in figures)
        table.add_row(titles[name], f"{figures_of_path['instructions']:,.0f}", share, *cells)
    return table


def describe() -> dict[str, Any]:
    """What the figures depend on, and where they are from."""
    version = subprocess.run(["valgrind", "--version"], check=True, capture_output=True, text=True)
    return {
        "made_with": {
            "python": ".".join(platform.python_version_tuple()[:2]),
            "numpy": metadata.version("numpy"),
            "jaxlib": metadata.version("jaxlib"),
            "valgrind": version.stdout.strip().removeprefix("valgrind-"),
            "processor": platform.machine(),
            "extension": "none" if native is None else "native",
        },
        "revision": machine.revision(ROOT),
        "machine": machine.describe()["cpu"],
    }


def _instructions(
    names: Sequence[str], functions: int
) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Of the import, and of one time along each path; and the functions that spend them."""
    with tempfile.TemporaryDirectory(prefix="counts-") as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--dump-before=getppid",
            f"--callgrind-out-file={folder}/out",
            sys.executable,
        ]
        _worker(command, "instructions", names)
        files = sorted(Path(folder).glob("out.*"), key=lambda file: int(file.suffix[1:]))
        instructions = instructions_of([total_of(file) for file in files], names)
        spenders = {}
        for place, path in enumerate(chosen(names) if functions else ()):
            text = files[3 + 3 * place].read_text(errors="replace")
            spenders[path.name] = []
            for spent, length in ((libraries_of(text), 6), (functions_of(text), functions)):
                most = sorted(spent, key=lambda name: -spent[name])[:length]
                lines = [f"{spent[name] / path.times:9,.0f}  {name}" for name in most]
                spenders[path.name] += [*lines, ""]
    return instructions, spenders


def instructions_of(totals: Sequence[int], names: Sequence[str]) -> dict[str, float]:
    """From the totals of the sections, in order; see `counts_worker`.

    The difference of two lengths has nothing of the loop's start in it.
    """
    expected = 2 + 3 * len(names)
    if len(totals) != expected:
        raise CountingError(f"expected {expected} sections, got {len(totals)}")
    instructions = {IMPORT: float(totals[1])}
    for place, path in enumerate(chosen(names)):
        _, once, twice = totals[2 + 3 * place : 5 + 3 * place]
        instructions[path.name] = round((twice - once) / path.times)
    return instructions


def total_of(file: Path) -> int:
    """The instructions of one section, from Callgrind's file; raises `CountingError`."""
    match = re.search(r"^totals: (\d+)$", file.read_text(errors="replace"), re.MULTILINE)
    if match is None:
        raise CountingError(f"no line of totals in {file.name}")
    return int(match[1])


def functions_of(text: str) -> dict[str, int]:
    """The instructions that each function spends itself, from the text of Callgrind's file."""
    return _spent(text, "fn")


def libraries_of(text: str) -> dict[str, int]:
    """The same for each library, or program, by the name of its file."""
    libraries: dict[str, int] = {}
    for file, spent in _spent(text, "ob").items():
        name = Path(file).name
        libraries[name] = libraries.get(name, 0) + spent
    return libraries


def _spent(text: str, kind: str) -> dict[str, int]:
    """By what lines of this kind name: "fn" for functions, "ob" for the files that hold them.

    A name is given once, as "fn=(number) name" or "cfn=(number) name", and then by its number. A
    line after "calls=" is what the function called spends.
    """
    names: dict[str, str] = {}
    spent: dict[str, int] = {}
    function, of_called = "", False
    for line in text.splitlines():
        if match := re.match(rf"(c?){kind}=(\(\d+\))(?: (.*))?$", line):
            called, number, name = match.groups()
            names.setdefault(number, name)
            function = function if called else names[number]
        elif line.startswith("calls="):
            of_called = True
        elif match := re.match(r"[+*\d-]\S* (\d+)$", line):
            if not of_called:
                spent[function] = spent.get(function, 0) + int(match[1])
            of_called = False
    return spent


def _worker(command: Sequence[str], kind: str, names: Sequence[str]) -> str:
    """What `counts_worker` prints, run by this command."""
    # One order of every set and dict, and no threads whose turns differ.
    fixed = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, "-m", "benchmarks.counts_worker", kind, *names],
            check=False,
            cwd=ROOT,
            env={**environment(), **fixed},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CountingError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise CountingError(f"exit status {done.returncode}: {lines[-1]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
