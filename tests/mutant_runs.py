"""Run tests with a line of the engine broken, in two ways, for ``tests/mutants.py``.

The quick way, ``Forks``: a process in which everything is imported forks; the fork puts the code of
the broken function into the functions that are there, and runs pytest. That takes a second, and
reaches every line that is in a function. The slow way, ``Files``: the line is broken in a file, and
a fresh process runs pytest. That reaches what runs while modules are imported, and the processes
that tests start.

Both work in copies of the checkout, so what a broken program does to files is not for the checkout.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import pkgutil
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pytest

from tests.mutations import Mutant, broken

DEVICES = "pytest.mark.devices"
"""What is in the files of tests that need several devices."""

HANGS = 300
"""Seconds after which a test is taken not to end in a fresh process; a run, after twice as many."""

QUIET = 60
"""Seconds without word from a fork after which its test is taken not to end."""

PROCESSOR = 300
"""Seconds of processor time that one run of pytest may take; what did not run noticed nothing."""

IMPORTED = [
    "tests.conftest",  # first: it sets what the package reads when it is imported
    "stretto",
    "hypothesis.extra.numpy",
    "onnxruntime",
    "scipy.signal",
    "scipy.stats",
    "sklearn",
]
"""What tests import, and forks need not, where it is installed."""


class Runs:
    """Runs tests with a line broken, and without; subclasses say how."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left_out: set[str] = set()
        """Tests that fail with no line broken: they notice nothing, and do not run again."""

    def run(self, tests: list[str], mutant: Mutant | None, devices: bool = False) -> str | None:
        """Return the first test that fails, "" where none can be told, ``None`` if all pass.

        With ``devices``, only the tests that need several run, in a process that has them.
        """
        raise NotImplementedError

    def failing(self, tests: list[str], mutant: Mutant | None = None) -> str | None:
        """Run tests, and those of them that need several devices; return as ``run`` does."""
        tests = [test for test in tests if (self.root / _file(test)).is_file()]
        if not tests:
            return None
        failed = self.run(tests, mutant)
        several = [t for t in tests if DEVICES in (self.root / _file(t)).read_text("utf-8")]
        if failed is None and several:
            failed = self.run(several, mutant, devices=True)
        return failed

    def noticed(self, mutant: Mutant, stages: list[list[str]]) -> str | None:
        """Return the first test that notices a broken line, or ``None``.

        It fails with the line broken, does so again when it runs alone, and then passes without.
        """
        for tests in stages:
            while (failed := self.failing(tests, mutant)) is not None:
                again = [failed] if failed else tests
                if self.failing(again, mutant) is None:
                    break
                if self.failing(again) is None:
                    return failed or "a run that does not end, or dies"
                if not failed or failed in self.left_out:
                    break
                self.left_out.add(failed)
        return None


def copied(root: Path, folder: Path) -> Path:
    """Copy a checkout, without what was built, and return where it is."""
    leave = shutil.ignore_patterns(".git", ".venv*", "build", "dist", ".pytest_cache")
    shutil.copytree(root, folder, ignore=leave)
    return folder


def linked(cache: Path, folder: Path) -> Path:
    """Make a folder for compiled programs that begins with those of another one, by links."""
    folder.mkdir(0o700, exist_ok=True)
    if cache.is_dir():
        shutil.copytree(cache, folder, copy_function=os.link, dirs_exist_ok=True)
    return folder


def _file(test: str) -> str:
    return test.partition("::")[0]


# The slow way


class Files(Runs):
    """Breaks a line in the file, and has a fresh process run the tests.

    Each process begins with the compiled programs of ``cache``: what a broken program writes there
    is not for the next.
    """

    def __init__(self, root: Path, cache: Path) -> None:
        super().__init__(root)
        self.cache = cache
        self.runs = 0

    def run(self, tests: list[str], mutant: Mutant | None, devices: bool = False) -> str | None:
        """Break the file, run pytest, and put the file back; return as ``Runs.run`` does."""
        if mutant is None:
            return self._pytest(tests, devices)
        file = self.root / mutant.path
        text, stat = file.read_text("utf-8"), file.stat()
        try:
            self._write(file, broken(text, mutant), stat)
            return self._pytest(tests, devices)
        finally:
            self._write(file, text, stat)

    def _write(self, file: Path, text: str, stat: os.stat_result) -> None:
        """Write a file, with a time that no bytecode has: a broken line may be as long."""
        self.runs += 1
        file.write_text(text, "utf-8")
        os.utime(file, (stat.st_atime, stat.st_mtime + 10 + self.runs))

    def _pytest(self, tests: list[str], devices: bool) -> str | None:
        programs = linked(self.cache, Path(tempfile.mkdtemp(dir=self.root.parent)))
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root / "src"),
            "PYTHONDONTWRITEBYTECODE": "",
            "CACHE_DIR_OF_TESTS": str(programs),
            "STRETTO_CACHE_DIR": str(programs),
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--rootdir=.", "--tb=no"]
        command += ["-o", f"faulthandler_timeout={HANGS}"]
        command += ["-o", "faulthandler_exit_on_timeout=true", "-p", "no:cacheprovider"]
        command += [f"--deselect={test}" for test in sorted(self.left_out)]
        if devices:
            command += ["-m", "devices"]
            environment["STRETTO_NUM_CPU_DEVICES"] = "8"
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR + 5))
        try:
            done = subprocess.run(
                [*command, *tests],
                cwd=self.root,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=limit,
                timeout=2 * HANGS,
            )
        except subprocess.TimeoutExpired:  # its threads wait for each other, after the last test
            return ""
        finally:
            shutil.rmtree(programs, ignore_errors=True)
        if done.returncode in (0, 5, -signal.SIGXCPU):  # 5: nothing was chosen
            return None
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return failed[1] if failed else ""


# The quick way


class Forks(Runs):
    """Forks this process, and breaks the functions that are in the fork.

    It imports all of the package from ``root``, and stays in that folder. What forks compile is
    kept in ``programs``, but for that of broken programs.
    """

    def __init__(self, root: Path, programs: Path) -> None:
        super().__init__(root)
        self.programs = programs
        os.environ["CACHE_DIR_OF_TESTS"] = os.environ["STRETTO_CACHE_DIR"] = str(programs)
        os.environ["PYTHONPATH"] = str(root / "src")
        os.chdir(root)
        here = {"", str(Path(__file__).parent.parent)}
        sys.path[:] = [str(root / "src"), str(root), *(p for p in sys.path if p not in here)]
        import_all(IMPORTED)
        self.guarded = importlib.import_module("stretto._engine.core.guarded").with_handler
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for function in gc.get_objects():
            if isinstance(function, FunctionType):
                self.functions.setdefault(_place(function.__code__), []).append(function)

    def noticed(self, mutant: Mutant, stages: list[list[str]]) -> str | None:
        """Return as ``Runs.noticed`` does; ``None`` also where no function has the line."""
        return super().noticed(mutant, stages) if self.codes(mutant) else None

    @functools.lru_cache(1)  # noqa: B019 (of the mutant that runs)
    def codes(self, mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
        """Return the functions that are there of a broken line, each with its broken code.

        That of a public function has a handler around it.
        """
        file = self.root / mutant.path
        text = file.read_text("utf-8")
        was = [*_codes(compile(text, str(file), "exec", dont_inherit=True))]
        try:
            now = [*_codes(compile(broken(text, mutant), str(file), "exec", dont_inherit=True))]
        except SyntaxError:
            return []
        if [(_place(code), code.co_freevars) for code in was] != [
            (_place(code), code.co_freevars) for code in now
        ]:
            return []
        forms = (lambda code: code, self.guarded)
        return [
            (function, form(after))
            for before, after in zip(was, now, strict=True)
            if before != after
            for function in self.functions.get(_place(before), ())
            for form in forms
            if function.__code__ == form(before)
        ]

    def run(self, tests: list[str], mutant: Mutant | None, devices: bool = False) -> str | None:
        """Run pytest in a fork; return as ``Runs.run`` does."""
        kept = _files(self.programs)
        reader, writer = Pipe(duplex=False)
        child = os.fork()
        if not child:
            reader.close()
            self._be_child(writer, tests, self.codes(mutant) if mutant else [], devices)
        writer.close()
        try:
            return heard(reader)
        finally:
            reader.close()
            _end(child)
            if mutant:
                for path, _ in _files(self.programs) - kept:
                    Path(path).unlink(missing_ok=True)  # another process may have done so

    def _be_child(
        self,
        writer: Connection,
        tests: list[str],
        codes: list[tuple[FunctionType, CodeType]],
        devices: bool,
    ) -> NoReturn:
        """Break functions, run pytest, and tell how it goes."""
        command = ["-x", "-q", "--tb=no", "--rootdir=.", "-p", "no:cacheprovider"]
        command += ["-p", "no:faulthandler", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        try:
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            if devices:
                command += ["-m", "devices"]
                os.environ["STRETTO_NUM_CPU_DEVICES"] = "8"
                importlib.import_module("stretto").config.num_cpu_devices = 8
            for function, code in codes:
                function.__code__ = code
            telling = Telling(writer, {t for t in tests if "::" in t}, self.left_out)
            files = dict.fromkeys(map(_file, tests))
            code = pytest.main([*command, *files], plugins=[telling])
            writer.send(("ended", int(code)))
        finally:
            os._exit(0)


class Telling:
    """A plugin of pytest in a fork: it runs some tests, and tells which runs, and which fails."""

    def __init__(self, writer: Connection, named: set[str], left_out: Collection[str]) -> None:
        self.writer, self.named, self.left_out = writer, named, left_out

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Take the tests that were named; all of a file, where none of it were."""
        files = {_file(name) for name in self.named}
        items[:] = [
            item
            for item in items
            if item.nodeid not in self.left_out
            and (item.nodeid in self.named or _file(item.nodeid) not in files)
        ]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell that a test begins."""
        self.writer.send(("runs", nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell that a test failed."""
        if report.failed:
            self.writer.send(("failed", report.nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell that a file cannot be read, as a test."""
        if report.failed:
            self.writer.send(("failed", report.nodeid))


def heard(reader: Connection) -> str | None:
    """Return the test that a fork says failed, or that ran when it died or fell silent."""
    running = ""
    with contextlib.suppress(EOFError):
        while reader.poll(QUIET):
            said, what = reader.recv()
            if said == "failed":
                return what
            if said == "ended":
                return None if what in (0, 5) else ""
            running = what
    return running


def import_all(names: list[str]) -> None:
    """Import modules by name, and all of the package; leave out what is not installed."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for found in pkgutil.walk_packages(sys.modules["stretto"].__path__, "stretto."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the codes of the functions and classes in a code, also those that are deeper."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _files(folder: Path) -> set[tuple[str, int]]:
    """Return the files below a folder, with numbers that change where they are replaced."""
    found: set[tuple[str, int]] = set()
    waiting: list[Any] = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    found.add((entry.path, entry.inode()))
    return found


def _end(child: int) -> None:
    """End a fork, and the processes that it started."""
    for end in (os.killpg, os.kill):  # it has a group of its own once it began
        with contextlib.suppress(ProcessLookupError):
            end(child, signal.SIGKILL)
    os.waitpid(child, 0)
