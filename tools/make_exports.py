"""Writes the names that public packages load on demand, from the imports that type checkers read.

Run ``python tools/make_exports.py`` when a package's imports under ``TYPE_CHECKING`` or a module's
``__all__`` have changed; a test fails while a package says something else. See
``src/stretto/_engine/core/lazy.py``.
"""

from __future__ import annotations

import ast
import importlib
import pathlib
import re
import textwrap

SOURCES = pathlib.Path(__file__).parents[1] / "src"
CALL = re.compile(r'(?<=^exports\(\n    __name__,\n    """\n)[^"]*(?=    """,)', re.MULTILINE)
"""Where a package's table of names is, in its source."""


def packages() -> list[pathlib.Path]:
    """The files of the packages and modules that have such a table."""
    files = sorted(SOURCES.rglob("*.py"))
    return [file for file in files if CALL.search(file.read_text("utf-8"))]


def name_of(file: pathlib.Path) -> str:
    """The name of the package whose ``__init__`` this is, or of the module."""
    path = file.parent if file.name == "__init__.py" else file.with_suffix("")
    return ".".join(path.relative_to(SOURCES).parts)


def names_of(file: pathlib.Path) -> dict[str, list[str]]:
    """The names that a package imports from each module, stars as what they stand for.

    An import without ``as`` is of a private module, and has none.
    """
    found: dict[str, list[str]] = {}
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom) and line.module is not None
                if line.names[0].name == "*":
                    names = all_of(line.module)
                else:
                    names = [alias.name for alias in line.names if alias.asname == alias.name]
                if names:
                    found.setdefault(line.module, []).extend(names)
    return found


def all_of(module: str) -> list[str]:
    """The names that a star stands for: ``__all__`` as it is written, or what is public there.

    Nothing is imported where that says it, so that nothing need work yet.
    """
    path = SOURCES / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(path.read_text("utf-8")).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    if any(
        isinstance(node, ast.Expr) and ast.unparse(node) == "exports(__name__)" for node in body
    ):
        return list(importlib.import_module(module).__all__)
    return sorted(name for node in body for name in defined(node) if not name.startswith("_"))


def defined(node: ast.stmt) -> list[str]:
    """The names that a statement gives a module, but for those it imports."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def table(file: pathlib.Path) -> str:
    """The table of a package as it would be written today."""
    package, lines = name_of(file), []
    for module, names in names_of(file).items():
        home = re.sub(rf"^{re.escape(package)}(\.|$)", ".", module)
        line = textwrap.fill(
            f"{home}: {' '.join(names)}",
            100,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines.append(line + "\n")
    return "".join(lines)


def source(file: pathlib.Path) -> str:
    """The source of a package, with its table as it would be written today."""
    return CALL.sub(lambda _: table(file), file.read_text("utf-8"))


if __name__ == "__main__":
    for path in packages():
        path.write_text(source(path), "utf-8")
