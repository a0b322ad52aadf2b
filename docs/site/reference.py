"""Writes the reference's pages: for each public name a directive that shows its docstring.

The names are those that ``make lint`` checks (``tests/form/docstrings.py``). A namespace is a page;
one with many names is a page of groups, one for each module that defines some of them. What several
namespaces export is shown in one, and listed in the others.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import stretto
from tests.form.docstrings import HELD, UNEXPORTED, _is_primitive, _names, _namespaces

__all__ = ["write"]

FEW = 30
"""Up to so many names stand on the page of their namespace itself."""


written: set[Path] = set()
"""The pages of this time."""

_KEPT = re.compile(r"(``.+?``|^ *>>> .*?(?:\n *\n|\Z))", re.DOTALL | re.MULTILINE)


def escaped(text: str) -> str:
    """A docstring whose bars and asterisks mean themselves, but for code and examples."""
    parts = _KEPT.split(text)
    parts[::2] = [re.sub(r"([|*])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


class Entry(NamedTuple):
    """A public name: where it is, what it stands for, and where its text stands."""

    name: str
    value: Any
    shown_as: str


def write(folder: Path) -> None:
    """Write all pages there, in place of those of the last time."""
    written.clear()
    namespaces = list(entries())
    for module, names in namespaces:
        _put(folder / f"{module.__name__}.rst", _namespace(module, names, folder))
    namespaces.sort(key=lambda pair: pair[0].__name__)
    listed = "\n".join(f"   {module.__name__}" for module, _ in namespaces)
    lines = "\n".join(_lines(module, names) for module, names in namespaces)
    held = "\n".join(map(_class, (f"{c.__module__}.{c.__qualname__}" for c in HELD)))
    _put(folder / "held.rst", f"{_title('Objects without a public name')}{held}")
    _put(
        folder / "index.rst",
        f"{_title('Reference')}All public functions and classes, by the namespace to import them "
        f"from. The examples run as tests. Below the namespaces is a line for each name.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listed}\n   held\n\n{lines}",
    )
    for path in set(folder.rglob("*.rst")) - written:  # of names that are gone
        path.unlink()


def entries() -> Iterator[tuple[ModuleType, list[Entry]]]:
    """Each namespace with its names."""
    first: dict[int, str] = {}
    done = set()
    for module in sorted((*_namespaces(stretto), *UNEXPORTED), key=_rank):
        if module.__name__ in done or module.__name__.startswith("stretto._"):
            continue
        done.add(module.__name__)
        found = []
        for name in _names(module):
            value = getattr(module, name)
            if inspect.ismodule(value) or _is_primitive(value):
                continue
            full = f"{module.__name__}.{name}"
            shown = first.setdefault(id(value), full) if _has_text(value) else full
            found.append(Entry(name, value, shown))
        if found:
            yield module, found


def _rank(module: ModuleType) -> tuple[int, str]:
    """Where a name is shown: in users' namespaces rather than those with other libraries' names."""
    later = ("stretto.typing", "stretto.linalg", "stretto.fft",
             "stretto.lax", "stretto.scipy", "stretto.laws")  # fmt: skip
    return module.__name__.startswith(later), module.__name__


def _has_text(value: object) -> bool:
    return inspect.isroutine(value) or isinstance(value, type)


def _namespace(module: ModuleType, names: list[Entry], folder: Path) -> str:
    space = module.__name__
    page = _title(space) + _first(module.__doc__) + "\n\n"
    own = [e for e in names if e.shown_as == f"{space}.{e.name}"]
    if len(own) <= FEW:
        page += "".join(map(_entry, own))
    else:
        groups = [(home, list(g)) for home, g in groupby(sorted(own, key=_home), key=_home)]
        listed = "\n".join(f"   {space}/{home}" for home, _ in groups)
        page += f".. toctree::\n   :hidden:\n\n{listed}\n\n"
        for home, members in groups:
            members.sort(key=lambda e: e.name.lower())
            title = home.replace("_", " ").capitalize()
            lines = "\n".join(
                f"   - :py:obj:`{e.name} <{e.shown_as}>`: {_sentence(e)}".rstrip(": ")
                for e in members
            )
            page += f":doc:`{title} <{space}/{home}>`\n{lines}\n\n"
            source = sys.modules.get(getattr(members[0].value, "__module__", None) or "")
            text = _first(source.__doc__ if source else "")
            body = "".join(map(_entry, members))
            _put(folder / space / f"{home}.rst", f"{_title(title)}{text}\n\n{body}")
    elsewhere = [e for e in names if e not in own]
    if elsewhere:
        page += "Also here, the same objects:\n\n"
        page += "".join(f"- ``{e.name}``: :py:obj:`{e.shown_as}`\n" for e in elsewhere)
    return page


def _lines(module: ModuleType, names: list[Entry]) -> str:
    """A line for each name of a namespace: a link, and what it does in a sentence."""
    space = module.__name__
    lines = [_title(space, "-"), _first(module.__doc__), ""]
    for e in sorted(names, key=lambda e: e.name.lower()):
        own = e.shown_as == f"{space}.{e.name}"
        said = _sentence(e) if own else f"The same as ``{e.shown_as}``."
        lines.append(f"- :py:obj:`{e.name} <{e.shown_as}>`: {said}".rstrip(": "))
    return "\n".join([*lines, "", ""])


def _sentence(entry: Entry) -> str:
    """The first sentence of what the name's own text says."""
    if _is_numpys(entry):
        return "The same as in NumPy."
    own = _has_text(entry.value) or not _plain(entry.value)
    text = _first(getattr(entry.value, "__doc__", None)) if own else ""
    return re.split(r"(?<=[.])\s", text, maxsplit=1)[0].rstrip(":")


def _is_numpys(entry: Entry) -> bool:
    home = getattr(entry.value, "__module__", None) or ""
    return home.partition(".")[0] in ("numpy", "ml_dtypes")


def _home(entry: Entry) -> str:
    """The module that defines it, without the names of the packages around."""
    module = getattr(entry.value, "__module__", None) if _has_text(entry.value) else None
    return "values" if not module else module.rpartition(".")[2]


def _entry(entry: Entry) -> str:
    if _is_numpys(entry):
        return f".. py:data:: {entry.shown_as}\n\n   The same as in NumPy.\n\n"
    if isinstance(entry.value, type):
        return _class(entry.shown_as)
    if inspect.isroutine(entry.value):
        return f".. autofunction:: {entry.shown_as}\n\n"
    text = _first(getattr(entry.value, "__doc__", None) or "") if not _plain(entry.value) else ""
    return f".. py:data:: {entry.shown_as}\n\n   {text}\n\n"


def _plain(value: object) -> bool:
    """Whether the docstring is that of a type of Python's, such as ``float``."""
    return type(value).__module__ in ("builtins", "types", "typing", "numpy")


def _class(name: str) -> str:
    return f".. autoclass:: {name}\n   :members:\n\n"


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"


def _first(text: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    return escaped((text or "").strip().partition("\n\n")[0].replace("\n", " "))


def _put(path: Path, text: str) -> None:
    """Write a page, unless it says so already: then Sphinx need not read it again."""
    written.add(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
