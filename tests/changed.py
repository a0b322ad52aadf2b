"""Find the tests of what changed, by names and imports: ``make test-changed``.

A source file is tested by its mirror, by the doctests in it, and by the test files that use a name
which it defines: ``st.vmap`` in a test is a use of the module that defines ``vmap``, and not of all
that ``stretto`` exports. The mirrors of the modules that use it run as well, as far as ``--depth``
goes. At most ``--most`` files run, the nearest; what reaches further is what ``make test`` is for.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent

EVERYTHING = ("conftest.py", "tests/conftest.py", "pyproject.toml", "setup.py")
"""Files that all tests depend on."""

FOLDERS = {"tests/form": "tests/form", "docs/decisions": "tests/form/test_decisions.py"}
"""Folders that have tests without importing: what runs where a file in them changed."""

NATIVE = ["tests/_engine/native/test_native.py", "tests/native/test_faults.py"]
KERNELS = [
    "tests/_engine/kernels/test_kernels.py",
    "tests/property/test_kernels_storm.py",
    "tests/property/test_rows_storm.py",
    "tests/property/test_along_storm.py",
    "tests/property/test_attention_storm.py",
    "tests/property/test_updates_storm.py",
    "tests/property/test_gather_storm.py",
]
"""The tests of the extensions in C."""


class Sources:
    """The Python files below a root by module name, and what each uses of the others."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.paths: dict[str, str] = {}
        for folder, prefix in (("src", ""), ("tests", "tests."), ("benchmarks", "benchmarks.")):
            for path in sorted((root / folder).rglob("*.py")):
                parts = path.relative_to(root / folder).with_suffix("").parts
                name = prefix + ".".join(parts)
                self.paths[name.removesuffix(".__init__")] = path.relative_to(root).as_posix()
        self.names = {path: name for name, path in self.paths.items()}
        self._files: dict[str, File] = {}

    def file(self, name: str) -> File:
        """Return what was parsed of a module."""
        if name not in self._files:
            text = (self.root / self.paths[name]).read_text("utf-8")
            self._files[name] = File(ast.parse(text), self.paths)
        return self._files[name]

    def home(self, dotted: str, seen: frozenset[str] = frozenset()) -> str | None:
        """Return the module that defines a dotted name, found through exports."""
        module, rest = self._split(dotted)
        if module is None or dotted in seen:
            return None
        if not rest:
            return module
        file, first = self.file(module), rest[0]
        if first in file.defined:
            return module
        if first in file.aliases:
            return self.home(".".join((file.aliases[first], *rest[1:])), seen | {dotted})
        for star in file.stars:
            found = self.home(f"{star}.{first}", seen | {dotted})
            if found and first in self.file(found).defined:
                return found
        return module

    def _split(self, dotted: str) -> tuple[str | None, list[str]]:
        """Return the longest prefix that is a module, and the names after it."""
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            if name in self.paths:
                return name, parts[length:]
        return None, parts

    @functools.cached_property
    def uses(self) -> dict[str, set[str]]:
        """Map each module to those whose names it uses."""
        return {
            name: {home for used in self.file(name).used if (home := self.home(used))} - {name}
            for name in self.paths
        }

    @functools.cached_property
    def used_by(self) -> dict[str, set[str]]:
        """Map each module to those that use its names."""
        users: dict[str, set[str]] = {name: set() for name in self.paths}
        for name, homes in self.uses.items():
            for home in homes:
                users[home].add(name)
        return users

    def mirrors(self, name: str) -> list[str]:
        """Return the paths of the test files that mirror a module of ``src``, as are there."""
        path = self.paths[name]
        if not path.startswith("src/stretto/"):
            return []
        below = Path(path).relative_to("src/stretto")
        stem = f"test_{(below.parent if below.stem == '__init__' else below).stem.lstrip('_')}"
        folder = self.root / "tests" / below.parent
        found = [*folder.glob(f"{stem}.py"), *sorted(folder.glob(f"{stem}_*.py"))]
        return [file.relative_to(self.root).as_posix() for file in found]

    def testers(self, name: str) -> list[str]:
        """Return the test files that use a module, also by way of helpers in ``tests``."""
        found: set[str] = set()
        seen, waiting = set(), [name]
        while waiting:
            for user in self.used_by[waiting.pop()] - seen:
                seen.add(user)
                path = self.paths[user]
                if Path(path).name.startswith("test_"):
                    found.add(path)
                elif path.startswith("tests/"):
                    waiting.append(user)
        return sorted(found)

    def around(self, names: Iterable[str], depth: int) -> list[str]:
        """Return modules of ``src`` that use these, or use what uses them, nearest first."""
        found, edge = list(dict.fromkeys(names)), list(dict.fromkeys(names))
        for _ in range(depth):
            users = {user for name in edge for user in self.used_by[name]}
            edge = sorted(u for u in users if self.paths[u].startswith("src/") and u not in found)
            found += edge
        return found


class File:
    """What a module defines, imports and uses, by names alone."""

    def __init__(self, tree: ast.Module, modules: Iterable[str]) -> None:
        self.aliases: dict[str, str] = {}
        self.stars: list[str] = []
        self.defined: set[str] = set()
        self.used: set[str] = set()
        for node in _statements(tree.body):
            self.defined |= defined(node)
        for node in ast.walk(tree):
            self._note_import(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if node.value.startswith("stretto.") and node.value in modules:
                    self.used.add(node.value)  # LazyModule("stretto.…") and its like
            elif isinstance(node, (ast.Attribute, ast.Name)):
                dotted = self._dotted(node)
                if dotted:
                    self.used.add(dotted)

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                self.aliases[alias.asname or first] = alias.name if alias.asname else first
                self.used.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if alias.name == "*":
                    self.stars.append(node.module)
                    self.used.add(node.module)
                else:
                    self.aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    self.used.add(f"{node.module}.{alias.name}")

    def _dotted(self, node: ast.AST) -> str | None:
        """Return the whole name of ``a.b.c`` where ``a`` was imported."""
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join((self.aliases[node.id], *reversed(names)))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those in its conditions and ``with`` blocks."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _statements([*node.body, *getattr(node, "orelse", ())])


def defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module or a class defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {name.id for t in targets if t for name in ast.walk(t) if isinstance(name, ast.Name)}


def tests_of(sources: Sources, name: str) -> list[str]:
    """Return the test files of one module: its mirrors first, then those that use it."""
    return list(dict.fromkeys([*sources.mirrors(name), *sources.testers(name)]))


def tests_for(sources: Sources, paths: Iterable[str], depth: int = 1) -> list[str]:
    """Return what pytest is to run where these files changed, the nearest first."""
    own: dict[str, None] = {}
    modules = []
    for path in paths:
        if path.endswith((".c", ".h")):
            own |= dict.fromkeys(KERNELS if "/kernels/" in path else NATIVE)
        elif path.endswith(".md"):
            own[path] = None
        elif path in sources.names:
            modules.append(sources.names[path])
            own |= dict.fromkeys([path] if Path(path).name.startswith("test_") else [])
        own |= {test: None for folder, test in FOLDERS.items() if path.startswith(folder)}
    mirrors = [sources.mirrors(name) for name in sources.around(modules, depth)]
    doctests = [path for name in modules if (path := sources.paths[name]).startswith("src/")]
    users = [path for name in modules for path in sources.testers(name)]
    found = dict.fromkeys([*own, *chain.from_iterable(mirrors[: len(modules)]), *doctests])
    found |= dict.fromkeys([*chain.from_iterable(mirrors), *users])
    return [path for path in found if (sources.root / path).exists()]


def changed(base: str, root: Path = ROOT) -> list[str]:
    """Return the files that differ from where this branch left ``base``, and the new ones."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout.splitlines() if done.returncode == 0 else []

    since = (git("merge-base", base, "HEAD") or ["HEAD"])[0]
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", since), *new})


def main() -> None:
    """Run pytest on the tests of what changed; arguments it does not know go to pytest."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--base", default="main", help="the branch to compare with")
    parser.add_argument("--depth", type=int, default=1, help="how far importers are followed")
    parser.add_argument("--most", type=int, default=60, help="how many files run at most")
    parser.add_argument("--list", action="store_true", help="print the files, and run nothing")
    options, rest = parser.parse_known_args()
    paths = changed(options.base)
    everything = [path for path in paths if path in EVERYTHING]
    found = tests_for(Sources(), paths, options.depth)
    tests = found[: options.most]
    if options.list:
        print(*tests, sep="\n")
        return
    print(f"{len(paths)} files changed; {len(found)} files have tests of them")
    if len(found) > len(tests):
        print(f"the nearest {len(tests)} run; make test runs the rest")
    if everything:
        print(f"all tests depend on {', '.join(everything)}: run make test as well")
    if tests:
        sys.stdout.flush()
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *rest, *tests])


if __name__ == "__main__":
    main()
