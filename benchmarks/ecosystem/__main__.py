"""The command: the test suites of libraries written for JAX, on Stretto.

It needs an environment with the libraries and Stretto, and without JAX. Each library's tests are
run from its source archive, and those that fail are compared with ``exceptions.json``, which has
the reason for each test that is known to fail. With an environment that has JAX, what fails is run
there too: what fails there as well is not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.ecosystem.libraries import LIBRARIES, Library
from benchmarks.ecosystem.suites import Outcome, compared, fetched, run

__all__ = ["main"]

EXCEPTIONS = Path(__file__).with_name("exceptions.json")
FIGURES = Path(__file__).with_name("figures.json")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if no test failed that is not known to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ecosystem", description=__doc__)
    parser.add_argument("--only", metavar="NAME,…", help="these libraries alone")
    parser.add_argument("--small", action="store_true", help="a part of them, in two minutes")
    parser.add_argument(
        "--sources", type=Path, default=Path(".ecosystem"), metavar="FOLDER",
        help="where the source archives are, or are fetched to",
    )  # fmt: skip
    parser.add_argument("--tests", default="", help="more options for pytest, such as '-k adam'")
    parser.add_argument(
        "--peer-python", metavar="PYTHON",
        help="the Python of an environment with the libraries and JAX, and not Stretto; the counts "
        "go to figures.json",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    wanted = (options.only or "").split(",")
    libraries = [library for library in LIBRARIES if not options.only or library.name in wanted]
    if not libraries:
        names = ", ".join(library.name for library in LIBRARIES)
        parser.error(f"argument --only: expected some of {names}; got {options.only}")
    known = json.loads(EXCEPTIONS.read_text("utf-8"))
    part = options.small or bool(options.tests)
    if part and options.peer_python:
        parser.error(
            "argument --peer-python: counts are of whole suites; leave out --small, --tests"
        )
    problems = 0
    for library in libraries:
        tests = library.small if options.small else library.tests
        if not tests:
            continue
        sources = fetched(library, options.sources)
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.xml")
            outcome = run(library, sources, report, tests, options.tests.split())
        new, gone = compared(outcome, known.get(library.name, {}))
        whole = outcome.passed + len(outcome.failed)
        print(f"{library.name} {library.version}: {outcome.passed} of {whole} tests pass")
        for test in new:
            print(f"  failed, and is not in exceptions.json: {test}")
        if not part:
            for name in gone:
                print(f"  passes, and is in exceptions.json: {name}")
        if options.peer_python:
            _count(library, sources, outcome, options.peer_python)
        problems += len(new)
    return 1 if problems else 0


def _count(library: Library, sources: Path, outcome: Outcome, jax: str) -> None:
    """Write down how many tests pass here, and how many of those that pass on JAX."""
    lost = 0
    if outcome.failed:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.xml")
            nodes = list(dict.fromkeys(outcome.failed.values()))
            lost = run(library, sources, report, nodes, jax=jax).passed
    print(f"  {outcome.passed} of {outcome.passed + lost} that pass on JAX")
    figures = json.loads(FIGURES.read_text("utf-8"))
    figures[library.name] = {
        "version": library.version,
        "passed": outcome.passed,
        "on JAX": outcome.passed + lost,
        "skipped": outcome.skipped,
    }
    FIGURES.write_text(json.dumps(dict(sorted(figures.items())), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
