"""Fetch a library's source archive, run its tests on Stretto or on JAX, and count what passes."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.ecosystem.libraries import Library

__all__ = ["Outcome", "compared", "fetched", "run", "tests_of"]

PLUGIN = "stretto.as_jax.pytest_plugin"


class Outcome(NamedTuple):
    """What came of the tests of a library.

    Args:
        passed: how many passed.
        skipped: how many were skipped, by their own conditions.
        failed: for the name of each that failed, what pytest calls it.
    """

    passed: int
    skipped: int
    failed: Mapping[str, str]


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


def run(
    library: Library,
    sources: Path,
    report: Path,
    tests: Sequence[str],
    more: Sequence[str] = (),
    jax: str | None = None,
) -> Outcome:
    """Run tests of the library, in another process, and those in each file ``apart`` in its own.

    Args:
        library: the library.
        sources: the folder of its source archive, in which the processes run.
        report: the file for pytest's reports, of one process at a time.
        tests: what pytest is to run: folders, files, or tests by pytest's names.
        more: more options for pytest.
        jax: the Python of an environment that has JAX, to run them on JAX; on Stretto by default.
    """
    file_of = lambda test: test.partition("::")[0]
    parts = [[test for test in tests if file_of(test) not in library.apart]]
    for file in library.apart:
        own = [test for test in tests if file_of(test) == file]
        parts.append([file] if tests == library.tests else own)
    outcomes = [_run(library, sources, report, part, more, jax) for part in parts if part]
    return Outcome(
        sum(outcome.passed for outcome in outcomes),
        sum(outcome.skipped for outcome in outcomes),
        dict(failed for outcome in outcomes for failed in outcome.failed.items()),
    )


def _run(
    library: Library,
    sources: Path,
    report: Path,
    tests: Sequence[str],
    more: Sequence[str],
    jax: str | None,
) -> Outcome:
    """Run tests in one process."""
    options = ["-p", "no:cacheprovider", "-q", "--continue-on-collection-errors"]
    options += ["-o", "junit_family=xunit1", f"--junitxml={report.absolute()}"]
    others = [file for file in library.apart if not tests[0].startswith(file)]
    options += [f"--ignore={name}" for name in (*library.left_out, *others)]
    if not jax:
        options += ["-p", PLUGIN]
    settings = sources / "pyproject.toml"
    if not settings.is_file() or "[tool.pytest" not in settings.read_text("utf-8"):
        (sources / "pytest.ini").touch()  # or pytest takes those of the project around it
    chosen = report.with_suffix(".txt")  # there can be more than a command line holds
    chosen.write_text("\n".join(tests))
    subprocess.run(
        [
            *(jax or sys.executable, "-m", "pytest", *options, *library.options),
            *(*more, f"@{chosen.absolute()}"),
        ],
        cwd=sources,
        env={**os.environ, **library.environ},
        check=False,
    )
    return tests_of(report)


def tests_of(report: Path) -> Outcome:
    """What a report of pytest's says of each test."""
    passed = skipped = 0
    failed: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        outcome = {child.tag for child in case}
        if outcome & {"failure", "error"}:
            failed[f"{case.get('classname')}::{case.get('name')}".lstrip(":")] = _of_pytest(case)
        elif "skipped" in outcome:
            skipped += 1
        else:
            passed += 1
    return Outcome(passed, skipped, failed)


def _of_pytest(case: ET.Element) -> str:
    """What pytest calls a test: its file, its class if it has one, and its name."""
    name, file = case.get("name", ""), case.get("file")
    if file is None:  # a file that could not be imported
        return name.replace(".", "/") + ".py"
    within = case.get("classname", "").removeprefix(file.removesuffix(".py").replace("/", "."))
    return "::".join([file, *within.split(".")[1:], name])


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
