"""Fetch a library's source archive, run its tests on Stretto, and count what passes.

Next, read ``__main__``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

from benchmarks.ecosystem.libraries import Library

__all__ = ["Outcome", "compared", "fetched", "run", "tests_of"]

PLUGIN = "stretto.as_jax.pytest_plugin"


class Outcome(NamedTuple):
    """What came of the tests of a library: how many passed, and which did not."""

    passed: int
    skipped: int
    failed: tuple[str, ...]


def fetched(library: Library, folder: Path) -> Path:
    """The folder of the library's sources, fetched into ``folder`` if they are not there."""
    stem = f"{library.name.replace('-', '_')}-{library.version}"
    if not (folder / stem).is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = f"{library.name}=={library.version}"
        options = ("--no-deps", "--no-binary", ":all:", "--quiet")
        subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), wanted],
            check=True,
        )
        with tarfile.open(next(folder.glob(f"{stem}.tar.*"))) as archive:
            archive.extractall(folder, filter="data")
    return folder / stem


def run(library: Library, sources: Path, report: Path, more: tuple[str, ...] = ()) -> Outcome:
    """Run the library's tests, in another process whose report goes to a file."""
    options = ("-p", PLUGIN, "-p", "no:cacheprovider", "-q", "--continue-on-collection-errors")
    skipped = [f"--ignore={name}" for name in library.left_out]
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *options, *skipped, *library.options),
            *(f"--junitxml={report.absolute()}", *more, *library.tests),
        ],
        cwd=sources,
        env={**os.environ, **library.environ},
        check=False,
    )
    return tests_of(report)


def tests_of(report: Path) -> Outcome:
    """What a report of pytest's says of each test."""
    passed = skipped = 0
    failed: list[str] = []
    for case in ET.parse(report).iter("testcase"):
        outcome = {child.tag for child in case}
        if outcome & {"failure", "error"}:
            failed.append(f"{case.get('classname')}::{case.get('name')}".lstrip(":"))
        elif "skipped" in outcome:
            skipped += 1
        else:
            passed += 1
    return Outcome(passed, skipped, tuple(failed))


def compared(outcome: Outcome, known: dict[str, str]) -> tuple[list[str], list[str]]:
    """The tests that failed without being known to, and those known to that did not fail.

    A name that ends with ``*`` stands for all that begin so.
    """

    def reason(test: str) -> str | None:
        return next((name for name in known if _is(test, name)), None)

    new = [test for test in outcome.failed if reason(test) is None]
    gone = [name for name in known if not any(_is(test, name) for test in outcome.failed)]
    return new, gone


def _is(test: str, name: str) -> bool:
    return test.startswith(name[:-1]) if name.endswith("*") else test == name
