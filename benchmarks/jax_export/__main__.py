"""The command: JAX's own tests of ``jax.export``, on Stretto.

They are in the file ``tests/export_test.py`` of JAX's repository, which is in no archive of JAX's:
give its path. It needs an environment with Stretto, pytest and absl, and without JAX. Tests that
fail are compared with ``exceptions.json``, which has the reason for each that is known to fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.ecosystem.suites import Outcome, compared, tests_of

__all__ = ["main", "reasons"]

EXCEPTIONS = Path(__file__).with_name("exceptions.json")
ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if no test failed that is not known to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jax_export", description=__doc__)
    parser.add_argument("file", type=Path, help="the path of export_test.py")
    options = parser.parse_args(arguments)
    if not options.file.is_file():
        parser.error(f"argument file: there is no file {options.file}")
    outcome = _run(options.file.resolve())
    known = json.loads(EXCEPTIONS.read_text("utf-8"))
    new, gone = compared(outcome, known)
    failed = len(outcome.failed)
    print(
        f"{outcome.passed} of {outcome.passed + failed} tests pass, {failed} fail, and "
        f"{outcome.skipped} skip themselves"
    )
    for reason, tests in reasons(outcome, known).items():
        print(f"  {len(tests)}: {reason}")
    for test in new:
        print(f"  failed, and is not in exceptions.json: {test}")
    for name in gone:
        print(f"  passes, and is in exceptions.json: {name}")
    return 1 if new else 0


def reasons(outcome: Outcome, known: dict[str, str]) -> dict[str, list[str]]:
    """The tests that failed and are known to, by the reason; the reason with most of them first."""
    found: dict[str, list[str]] = defaultdict(list)
    for test, node in outcome.failed.items():
        for name, reason in known.items():
            if not compared(Outcome(0, 0, {test: node}), {name: reason})[0]:
                found[reason].append(test)
                break
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def _run(file: Path) -> Outcome:
    """Run the tests in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        report, settings = Path(folder, "report.xml"), Path(folder, "pytest.ini")
        settings.write_text("[pytest]\njunit_family = xunit1\n")
        options = ["-p", "benchmarks.jax_export.stand_ins", "-p", "no:cacheprovider", "-q"]
        options += [
            "-c",
            str(settings),
            f"--junitxml={report}",
            "--tb=no",
            f"--rootdir={file.parent}",
        ]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, str(file)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_paths()])},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        return tests_of(report)


def _paths() -> list[str]:
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [os.path.abspath(path) for path in given if path]


if __name__ == "__main__":
    sys.exit(main())
