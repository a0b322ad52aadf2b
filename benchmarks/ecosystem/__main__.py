"""The command: the test suites of libraries written for JAX, on Stretto.

It needs an environment with the libraries and Stretto, and without JAX. Each library's tests are
run from its source archive, and those that fail are compared with ``exceptions.json``, which has
the reason for each test that is known to fail.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.ecosystem.libraries import LIBRARIES
from benchmarks.ecosystem.suites import compared, fetched, run

__all__ = ["main"]

EXCEPTIONS = Path(__file__).with_name("exceptions.json")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if no test failed that is not known to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ecosystem", description=__doc__)
    parser.add_argument("--only", metavar="NAME,…", help="these libraries alone")
    parser.add_argument(
        "--sources", type=Path, default=Path(".ecosystem"), metavar="FOLDER",
        help="where the source archives are, or are fetched to",
    )  # fmt: skip
    parser.add_argument("--tests", default="", help="more options for pytest, such as '-k adam'")
    options = parser.parse_args(arguments)
    wanted = (options.only or "").split(",")
    libraries = [library for library in LIBRARIES if not options.only or library.name in wanted]
    if not libraries:
        names = ", ".join(library.name for library in LIBRARIES)
        parser.error(f"argument --only: expected some of {names}; got {options.only}")
    known = json.loads(EXCEPTIONS.read_text("utf-8"))
    problems = 0
    for library in libraries:
        with tempfile.TemporaryDirectory() as folder:
            sources = fetched(library, options.sources)
            report = Path(folder, "report.xml")
            outcome = run(library, sources, report, tuple(options.tests.split()))
        new, gone = compared(outcome, known.get(library.name, {}))
        whole = outcome.passed + len(outcome.failed)
        print(f"{library.name} {library.version}: {outcome.passed} of {whole} tests pass")
        for test in new:
            print(f"  failed, and is not in exceptions.json: {test}")
        if not options.tests:
            for name in gone:
                print(f"  passes, and is in exceptions.json: {name}")
        problems += len(new)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
