"""Record which tests run which lines of the engine: a plugin of pytest, for ``tests/mutants.py``.

``pytest -p tests.lines`` with ``LINES_OF_TESTS=FOLDER`` writes a file for each process, with the
lines that each test ran. ``python -m tests.lines FOLDER RECORD`` puts them together, with a few
tests for each line; ``make test-lines`` does both. Recording takes three times as long as the tests
alone.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

from tests.mutants import digest

ENGINE = Path(__file__).parent.parent / "src" / "stretto" / "_engine"

NEAREST, FULLEST, IMPORTING, EACH = 6, 6, 8, 8
"""From how many files the tests of a line are chosen, by folder, by number of tests, and of those
that import its module by name; and how many from each."""


class Recording:
    """Records the lines of one process, by test."""

    def __init__(self, folder: Path) -> None:
        self.coverage = coverage.Coverage(
            data_file=str(folder / "lines"),
            data_suffix=True,
            config_file=False,
            source=[str(ENGINE)],
        )
        # Python 3.14's own way of watching lines does not tell tests apart.
        self.coverage.set_option("run:core", "ctrace")
        # Warnings are errors in tests; one that traces its own calls ends the recording.
        self.coverage.set_option("run:disable_warnings", ["trace-changed", "no-data-collected"])
        self.coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what runs until the next test as this one's."""
        if sys.gettrace() is None:
            self.coverage.stop()
            self.coverage.start()
        self.coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self.coverage.stop()
        self.coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record, in each process that runs tests."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", 0):
        config.pluginmanager.register(Recording(Path(os.environ["LINES_OF_TESTS"])))


# Reading what was recorded


def combined(folder: Path) -> dict[str, dict[int, dict[str, list[str]]]]:
    """Return what all processes recorded: by path and line, the tests by their file.

    A path is relative to the checkout. Lines that only run while modules are imported have none.
    """
    found: dict[str, dict[int, dict[str, list[str]]]] = {}
    for file in sorted(folder.glob("lines.*")):
        data = coverage.CoverageData(str(file))
        data.read()
        for measured in data.measured_files():
            path = Path(measured).relative_to(ENGINE.parents[2]).as_posix()
            lines = found.setdefault(path, {})
            for line, tests in data.contexts_by_lineno(measured).items():
                by_file = lines.setdefault(line, {})
                for test in sorted(filter(None, tests)):
                    by_file.setdefault(test.partition("::")[0], []).append(test)
    return found


def write(folder: Path, record: Path) -> None:
    """Put together what was recorded, with the files' content that the lines are of."""
    numbers: dict[str, int] = {}
    files = {}
    for path, lines in combined(folder).items():
        few = {line: few_of(tests, path) for line, tests in lines.items()}
        files[path] = {
            "digest": digest(ENGINE.parents[2] / path),
            "lines": {
                line: [numbers.setdefault(test, len(numbers)) for test in tests]
                for line, tests in few.items()
                if tests
            },
        }
    record.write_text(json.dumps({"tests": [*numbers], "files": files}), "utf-8")


def few_of(by_file: dict[str, list[str]], path: str) -> list[str]:
    """Choose some tests of a line, from three sorts of files.

    Those nearest to it, those with most tests, and those that import its module: such as set a
    constant of it, so that a condition that is rarely met is.
    """
    parts = path.replace("src/stretto/", "tests/").split("/")[:-1]
    shared = lambda file: sum(a == b for a, b in zip(parts, file.split("/"), strict=False))
    nearest = sorted(by_file, key=shared, reverse=True)
    fullest = sorted(by_file, key=lambda file: -len(by_file[file]))
    package, _, name = (
        path.removeprefix("src/").removesuffix(".py").replace("/", ".").rpartition(".")
    )
    imported = rf" import (?:\([^)]*|[^(\n]*)\b{name}\b"
    word = re.compile(rf"{re.escape(package)}(?:\.{name}\b|{imported})")
    importing = [file for file in nearest if word.search(text_of(file))]
    chosen = [*nearest[:NEAREST], *fullest[:FULLEST], *importing[:IMPORTING]]
    spread = lambda tests: tests[:: max(1, len(tests) // EACH)][:EACH]
    return [test for file in dict.fromkeys(chosen) for test in spread(by_file[file])]


@functools.cache
def text_of(file: str) -> str:
    """Return what is in a file of tests."""
    path = ENGINE.parents[2] / file
    return path.read_text("utf-8") if path.is_file() else ""


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
