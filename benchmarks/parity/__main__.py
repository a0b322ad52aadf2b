"""The command: random cases of every layer and function, in PyTorch and in Stretto."""

from __future__ import annotations

import argparse
import os
import sys
import time
from fnmatch import fnmatchcase

from rich.console import Console

import stretto as st
from benchmarks.parity.case import Case, described, packed, unpacked
from benchmarks.parity.compare import DIFFER, Verdict, compare
from benchmarks.parity.families import FAMILIES, cases_of
from benchmarks.parity.known import WITHOUT_CASE
from benchmarks.parity.report import Tried, counts_of, reasons_of, table_of
from benchmarks.process import Worker, WorkerError

__all__ = ["main"]

CASES, QUICK = 10, 2

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""The arrays are small, and threads only get into each other's way."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if nothing differs, 1 if something does."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__)
    parser.add_argument(
        "--peer-python", default=".venv-bench/bin/python", help="interpreter that has torch"
    )
    parser.add_argument("--only", default="*", metavar="GLOB", help="families, such as '*Norm?d'")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other cases")
    parser.add_argument(
        "--cases", type=int, help=f"cases of each family ({CASES}; with --quick {QUICK})"
    )
    parser.add_argument("--quick", action="store_true", help="few cases of each family")
    parser.add_argument("--verbose", action="store_true", help="show what both refuse, too")
    options = parser.parse_args(arguments)
    names = [name for name in FAMILIES if fnmatchcase(name, options.only)]
    if not names:
        parser.error(f"argument --only: {options.only} fits no layer and no function")
    count = options.cases if options.cases is not None else QUICK if options.quick else CASES
    if count < 1:
        parser.error(f"argument --cases: expected at least 1, got {count}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        worker = Worker(
            "torch",
            os.path.abspath(options.peer_python),
            variables=ONE_THREAD,
            package="benchmarks.parity",
        )
    except WorkerError as error:
        print(error, file=sys.stderr)
        return 1
    start = time.perf_counter()
    trials = []
    try:
        with st.enable_x64(), console.status("", refresh_per_second=1) as status:
            for name in names:
                status.update(name)
                trials_of_name = [
                    _try(name, case, worker) for case in cases_of(name, count, options.seed)
                ]
                _show(trials_of_name, options.verbose, console)
                trials += trials_of_name
    finally:
        worker.close()
    _print_end(trials, worker, options, time.perf_counter() - start, console)
    return 1 if counts_of(trials)[DIFFER] else 0


def _try(name: str, case: Case, worker: Worker) -> Tried:
    try:
        results = unpacked(worker.ask("carry out", case=packed(case))["results"])
    except WorkerError as error:
        return Tried(name, described(case), Verdict(DIFFER, f"PyTorch's worker: {error}"))
    return Tried(name, described(case), compare(case, results))


def _show(trials: list[Tried], verbose: bool, console: Console) -> None:
    for one in trials:
        if one.verdict.outcome == DIFFER or (verbose and one.verdict.why):
            text = f"{one.verdict.outcome}: {one.case}: {one.verdict.why}"
            style = "red" if one.verdict.outcome == DIFFER else "dim"
            console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _print_end(
    trials: list[Tried],
    worker: Worker,
    options: argparse.Namespace,
    seconds: float,
    console: Console,
) -> None:
    for line in reasons_of(trials):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for name, reason in WITHOUT_CASE.items():
        if fnmatchcase(name, options.only):
            console.print(f"no cases: {name}: {reason}", highlight=False, soft_wrap=True)
    console.print(table_of(trials))
    versions = worker.about["versions"]
    console.print(
        f"PyTorch {versions['torch']}, Stretto {st.__version__}; seed {options.seed}; "
        f"float64 eagerly and float32 compiled; {seconds:.0f} s",
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())
