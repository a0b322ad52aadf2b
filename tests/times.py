"""Measure the processor time of each test, record what takes long, and leave that out on request.

``times.toml``, beside this file, has each test that took at least 0.1 s. A test that is not there
counts as quick, so a new one runs everywhere until it was recorded. ``pytest --quick`` leaves out
what is there, unless its name was given; ``pytest --record-times`` measures, and replaces what is
recorded of the files that it ran as a whole.

Processor time, and not time that passes, because other processes of the machine must not count. It
is that of all threads of this process, and of the children that ended while the test ran.
"""

from __future__ import annotations

import json
import os
import time
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECORD = Path(__file__).with_name("times.toml")
MEASURED = ROOT / "build" / "times"
"""A file for each process that runs tests: a line for each test, its seconds and its name."""

SLOW = 0.1
"""Seconds from which a test is recorded, and left out by ``--quick``."""

HEADER = """\
# Seconds of processor time of the tests that take at least 0.1, by file and name, with an empty
# cache of compiled programs. `make test-times` writes this; `make test` leaves these out.
"""


def processor_time() -> float:
    """Return the seconds that this process, and its children that ended, took of processors."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def read(path: Path = RECORD) -> dict[str, float]:
    """Return the recorded seconds by the whole name of the test."""
    if not path.exists():
        return {}
    files = tomllib.loads(path.read_text("utf-8"))
    return {f"{file}::{test}": s for file, tests in files.items() for test, s in tests.items()}


def write(times: dict[str, float], path: Path = RECORD) -> None:
    """Write the seconds of the tests that take long, sorted by file and name."""
    files: dict[str, dict[str, float]] = defaultdict(dict)
    for name, seconds in sorted(times.items()):
        if seconds >= SLOW:
            file, _, test = name.partition("::")
            files[file][test] = seconds
    lines = [HEADER]
    for file, tests in files.items():
        lines.append(f"\n[{_quoted(file)}]\n")
        lines += [f"{_quoted(test)} = {seconds:.2f}\n" for test, seconds in tests.items()]
    path.write_text("".join(lines), "utf-8")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def merged(
    old: dict[str, float], new: dict[str, float], whole: set[str] | None = None
) -> dict[str, float]:
    """Return the record once these were measured; what is gone from the ``whole`` files goes."""
    gone = {name for name in old if name.partition("::")[0] in (whole or ())}
    return {name: s for name, s in old.items() if name not in gone} | new


def pytest_addoption(parser):
    """Add the two options."""
    group = parser.getgroup("times")
    group.addoption("--quick", action="store_true", help="leave out tests that take long")
    group.addoption("--record-times", action="store_true", help="write tests/times.toml")


def pytest_configure(config):
    """Measure in processes that run tests; begin with nothing measured."""
    config.pluginmanager.register(Slow(config), "slow")
    if not config.getoption("record_times"):
        return
    if not hasattr(config, "workerinput"):
        MEASURED.mkdir(parents=True, exist_ok=True)
        for file in MEASURED.glob("*.txt"):
            file.unlink()
    config.pluginmanager.register(Measuring(config), "measuring")


class Slow:
    """Leave out the tests that are recorded as slow, and say how many."""

    def __init__(self, config):
        self.left_out = 0
        self.named = [arg for arg in config.args if "::" in arg]
        self.quick = config.getoption("quick")

    def pytest_collection_modifyitems(self, config, items):
        """Deselect what is slow and was not named."""
        if not self.quick:
            return
        recorded = read()
        slow = {name for name, seconds in recorded.items() if seconds >= SLOW}
        left_out = [
            item
            for item in items
            if item.nodeid in slow and not any(item.nodeid.startswith(n) for n in self.named)
        ]
        if left_out:
            gone = set(left_out)
            items[:] = [item for item in items if item not in gone]
            config.hook.pytest_deselected(items=left_out)
        self.left_out = len(left_out)

    def pytest_sessionfinish(self, session):
        """Tell the process that began how many were left out."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = self.left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Take the number from a process that ran tests: each of them left out the same."""
        output = getattr(node, "workeroutput", None) or {}
        self.left_out = output.get("left_out", self.left_out)

    def pytest_terminal_summary(self, terminalreporter):
        """Say how many tests were left out, and what runs them."""
        if self.left_out:
            terminalreporter.write_line(
                f"{self.left_out} tests that take {SLOW} s and more were left out; "
                "make test-all runs them"
            )


class Measuring:
    """Write down the processor time of each test, and in the end those that take long."""

    def __init__(self, config):
        self.worker = hasattr(config, "workerinput")
        name = config.workerinput["workerid"] if self.worker else "main"
        self.path = MEASURED / f"{name}.txt"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """Measure one test, with its fixtures."""
        began = processor_time()
        result = yield
        seconds = processor_time() - began
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{seconds:.4f} {item.nodeid}\n")
        return result

    def pytest_sessionfinish(self, session):
        """Join what all processes measured with the record."""
        if self.worker:
            return
        write(merged(read(), measured(), whole_files(session.config)))


def measured() -> dict[str, float]:
    """Return the seconds of each test that the last run measured."""
    times = {}
    for file in sorted(MEASURED.glob("*.txt")):
        for line in file.read_text("utf-8").splitlines():
            seconds, _, name = line.partition(" ")
            times[name] = float(seconds)
    return times


def whole_files(config) -> set[str]:
    """Return the files of which all tests ran; none where tests were chosen by name or mark."""
    chosen = any(config.getoption(name) for name in ("keyword", "markexpr", "quick", "deselect"))
    if chosen or any("::" in arg for arg in config.args):
        return set()
    return {name.partition("::")[0] for name in measured()}
