"""Checks the docstrings of all public names: ``python -m tests.form.docstrings``, in ``make lint``.

The form is that of CONTRIBUTING.md: a first sentence on one line, ``Args:`` with exactly the
parameters, ``Returns:`` or ``Yields:``, ``Raises:`` with each error of the function's own checks,
and an example; with whole annotations beside it. The errors are those raised in its body and in
the private functions of its module that it calls, and those of ``CONTRACTS``. Whether ``Any`` is
the honest type of a parameter cannot be decided here, and is left to the reader.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import stretto
import stretto.laws
from stretto._engine.api.autodiff.linear_functions import JvpFunction, VjpFunction
from stretto._engine.core.config import Config
from stretto._engine.core.primitive import Primitive
from stretto.numpy.updating import At

SOURCES = Path(__file__).parents[2] / "src" / "stretto"

CONTRACTS = {
    "as_device": "ValueError",
    "axis_of": "TypeError",
    "broadcast_shapes": "ValueError",
    "canonical_axes": "ValueError",
    "canonical_axis": "ValueError",
    "check_features": "ValueError",
    "checked_path": "TypeError",
    "count": "TypeError",
    "integer": "TypeError",
    "integer_or_traced": "TypeError",
    "integers": "TypeError",
    "laid_out": "ValueError",
    "pairs_of": "TypeError ValueError",
    "positive": "ValueError",
    "prefix_leaves": "ValueError",
    "put_result": "ValueError",
    "refuse_complex": "TypeError",
    "refuse_inplace": "ValueError",
    "refuse_unknown": "TypeError",
    "sizes_of": "TypeError ValueError",
}
"""Shared helpers for arguments, and what each raises for a bad one, whatever else is right."""

UNEXPORTED = (stretto.laws,)
"""Public modules that are imported by name, since the package does not export them."""

HELD: tuple[type, ...] = (At, Config, JvpFunction, VjpFunction)
"""Classes without a public name whose instances users hold."""

NOT_MADE_BY_USERS = {
    "At": "x.at[index]",
    "Config": "st.config",
    "JvpFunction": "st.linearize",
    "VjpFunction": "st.vjp",
    "stretto.typing.Device": "st.devices",
    "stretto.typing.CustomVJPPrimal": "the fwd of a custom_vjp with symbolic zeros",
    "stretto.ensemble.AverageState": "SWA.init",
    "stretto.ensemble.ConformalSets": "fit_conformal",
    "stretto.ensemble.Event": "fit(callbacks=[...])",
    "stretto.ensemble.Fitted": "fit",
    "stretto.ensemble.HistogramBinning": "fit_histogram_binning",
    "stretto.ensemble.Isotonic": "fit_isotonic",
    "stretto.ensemble.Platt": "fit_platt",
    "stretto.ensemble.SWAGState": "SWAG.init",
    "stretto.ensemble.SnapshotState": "Snapshots.init",
    "stretto.ensemble.Temperature": "fit_temperature",
    "stretto.ensemble.TrainState": "fit",
    "stretto.ensemble.VectorScaling": "fit_vector_scaling",
    "stretto.files.Header": "st.files.load_header",
    "stretto.tree.Unravel": "tree.ravel",
    "stretto.numpy.ufunc": "snp.frompyfunc",
    "stretto.random.PRNGKeyArray": "random.key",
    "stretto.typing.ArgInfo": "st.jit(f).lower(...).args_info",
    "stretto.typing.Compiled": "st.jit(f).lower(...).compile()",
    "stretto.typing.Lowered": "st.jit(f).lower(...)",
    "stretto.typing.TracedCall": "st.jit(f).trace(...)",
    "stretto.typing.Jitted": "st.jit",
}
"""Classes whose constructors are not for users, and what gives their instances."""

SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises")
HEADING = re.compile(rf"({'|'.join(SECTIONS)}):$")
ENTRY = re.compile(r" {4}(\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*):( |$)")
WRAPPERS = (property, classmethod, staticmethod)
NO_RESULT = ("None", "NoReturn", "Never")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Helpers = dict[str, Function]


class Place(NamedTuple):
    """A definition: its file, and its node there."""

    path: Path
    node: Function | ast.ClassDef
    helpers: Helpers
    """The functions of the same module, by name."""


class Fault(NamedTuple):
    """What is wrong with a public name, and where it is defined."""

    path: Path
    line: int
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}: {self.text}"


# The public names.


def public_names() -> Iterator[tuple[str, Any]]:
    """All public functions, classes and objects of the package, by a name that reaches them."""
    seen: set[int] = set()
    for module in (*_namespaces(stretto), *UNEXPORTED):
        for name in _names(module):
            value = getattr(module, name)
            if not inspect.ismodule(value) and not _is_primitive(value) and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value
    for value in HELD:
        yield value.__qualname__, value


def _namespaces(module: ModuleType) -> Iterator[ModuleType]:
    """A public package or module, and those inside it that it exports."""
    yield module
    for name in _names(module):
        inner = getattr(module, name)
        if inspect.ismodule(inner):
            yield from _namespaces(inner)


def _names(module: ModuleType) -> list[str]:
    """What a namespace exports: without ``__all__``, what its star imports took from inside it."""
    exported = getattr(module, "__all__", None)
    if exported is None:
        inside = f"{module.__name__}."
        own = {n: getattr(v, "__module__", None) or "" for n, v in vars(module).items()}
        return sorted(n for n, m in own.items() if n[0] != "_" and m.startswith(inside))
    return [name for name in exported if not name.startswith("_")]


def _is_primitive(value: Any) -> bool:
    """Whether it is an operation, whose rules have the meaning that their base class says."""
    return issubclass(value if isinstance(value, type) else type(value), Primitive)


# Definitions.


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _functions(path: Path) -> dict[int, Function]:
    """By the first line of the code, which is that of the first decorator if there is one."""
    return {
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]): node
        for node in ast.walk(_parsed(path))
        if isinstance(node, Function)
    }


@cache
def _helpers(path: Path) -> Helpers:
    return {node.name: node for node in _parsed(path).body if isinstance(node, Function)}


def place_of(value: Any) -> Place | None:
    """Where a function or class is defined, if it is in a file of this package."""
    if isinstance(value, type):
        path = Path(getattr(sys.modules.get(value.__module__), "__file__", None) or "")
        node = _class(path, value.__qualname__) if _is_ours(path) else None
    else:
        code = getattr(inspect.unwrap(value), "__code__", None)
        if not isinstance(code, CodeType):
            return None
        path = Path(code.co_filename)
        node = _functions(path).get(code.co_firstlineno) if _is_ours(path) else None
    return None if node is None else Place(path, node, _helpers(path))


def _is_ours(path: Path) -> bool:
    return SOURCES in path.parents


def _class(path: Path, qualname: str) -> ast.ClassDef | None:
    body: list[ast.stmt] = _parsed(path).body
    node = None
    for name in qualname.split("."):
        node = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == name), None)
        body = node.body if node else []
    return node


# Docstrings.


class Docstring:
    """A docstring's first line, and the lines of its sections in the order of the text."""

    def __init__(self, text: str) -> None:
        self.text = inspect.cleandoc(text)
        self.first, _, _ = self.text.partition("\n\n")
        self.sections: dict[str, list[str]] = {}
        self.order: list[str] = []
        lines: list[str] | None = None
        for line in self.text.split("\n"):
            heading = HEADING.match(line)
            if heading:
                self.order.append(heading[1])
                lines = self.sections.setdefault(heading[1], [])
            elif line and not line.startswith(" "):
                self.order.append("")
                lines = None
            elif lines is not None and line:
                lines.append(line)

    def entries(self, section: str) -> list[str]:
        """What a section names, before the colons; several names may share a line."""
        heads = [ENTRY.match(line) for line in self.sections.get(section, [])]
        return [name.lstrip("*") for head in heads if head for name in head[1].split(", ")]


# Errors.


def errors_of(node: ast.AST, helpers: Helpers, seen: frozenset[str] = frozenset()) -> set[str]:
    """The classes of the errors that a body raises, itself or in private helpers of its module."""
    if isinstance(node, ast.Raise):
        return _raised(node.exc, helpers)
    if isinstance(node, ast.Try) and node.handlers:
        caught = {name for handler in node.handlers for name in _caught(handler)}
        body = set().union(*(errors_of(part, helpers, seen) for part in node.body))
        rest = (*node.handlers, *node.orelse, *node.finalbody)
        outside = set().union(*(errors_of(part, helpers, seen) for part in rest))
        return outside | (set() if "Exception" in caught else body - caught)
    errors: set[str] = set()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        errors.update(CONTRACTS.get(name, "").split())
        if name.startswith("_") and name in helpers and name not in seen:
            errors |= errors_of(helpers[name], helpers, seen | {name})
    for child in ast.iter_child_nodes(node):
        errors |= errors_of(child, helpers, seen)
    return errors


def _last_name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _raised(raised: ast.expr | None, helpers: Helpers) -> set[str]:
    """The class in ``raise X``, ``raise X(...)``, or that ``raise helper(...)`` is said to give."""
    if isinstance(raised, ast.IfExp):
        return _raised(raised.body, helpers) | _raised(raised.orelse, helpers)
    name = _last_name(raised.func if isinstance(raised, ast.Call) else raised)
    if name in helpers:
        name = _last_name(helpers[name].returns)
    return {name} if name[:1].isupper() else set()


def _caught(handler: ast.ExceptHandler) -> Iterator[str]:
    if handler.type is None:
        yield "Exception"
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    yield from ("Exception" if _last_name(p) == "BaseException" else _last_name(p) for p in parts)


# The rules.


def faults_of(name: str, value: Any) -> Iterator[Fault]:
    """What is wrong with a public function, or with a class and its public methods."""
    place = place_of(value)
    if place is None:
        return
    parts = [(name, value, "function")]
    if isinstance(value, type):
        parts += [(f"{name}.{method}", f, kind) for method, f, kind in methods_of(value)]
    texts = []
    for part_name, part, kind in parts:
        where = place_of(part)
        if where is not None:
            doc = Docstring(part.__doc__ or "")
            texts.append(doc.text)
            for text in faults_in(part_name, where, doc, part, kind, value):
                yield Fault(where.path, where.node.lineno, part_name, text)
    if _needs_example(name, value) and not any(">>> " in text for text in texts):
        yield Fault(place.path, place.node.lineno, name, "has no example")


def _needs_example(name: str, value: Any) -> bool:
    """Not errors, records and protocols, nor what users do not make: other examples show them."""
    if not isinstance(value, type):
        return not _refuses(value)
    protocol = getattr(value, "_is_protocol", False)
    return not (protocol or name in NOT_MADE_BY_USERS or issubclass(value, (BaseException, tuple)))


def _refuses(value: Any) -> bool:
    """Whether a function only raises: its sentence and ``Raises`` say all there is."""
    return getattr(value, "__annotations__", {}).get("return") == "NoReturn"


def methods_of(cls: type) -> Iterator[tuple[str, Any, str]]:
    """The public methods and properties that a class itself has, as functions, with their kinds."""
    for name, member in vars(cls).items():
        kind = type(member).__name__ if isinstance(member, WRAPPERS) else "method"
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if "<locals>" not in function.__code__.co_qualname:  # else it was made for many names
            inside = function.__qualname__.startswith(f"{cls.__qualname__}.")
            yield name, function, kind if inside else "function"  # one given to the class


def faults_in(
    name: str, place: Place, doc: Docstring, value: Any, kind: str, owner: Any
) -> Iterator[str]:
    """What is wrong with one function, class or method; ``owner`` is the class of a method."""
    node = place.node
    if not doc.text:
        yield "has no docstring"
        return
    if "\n" in doc.first or not doc.first.endswith("."):
        yield f"does not begin with one sentence on one line: {doc.first[:60]!r}"
    ranks = [SECTIONS.index(s) if s else len(SECTIONS) for s in doc.order]
    start = next((i for i, s in enumerate(doc.order) if s), len(ranks))
    if ranks[start:] != sorted(ranks[start:]):
        yield f"sections are not in the order {', '.join(SECTIONS)}, and then the rest"
    if isinstance(node, ast.ClassDef):
        init = place_of(value.__init__)
        if init is not None and name in NOT_MADE_BY_USERS:
            return
        if init is None or isinstance(init.node, ast.ClassDef):
            yield from _compare(_fields(value), doc, _described(node, doc))
        else:
            yield from _check_args(init.node, doc, skip=1)
            yield from _check_annotations(init.node, skip=1, result=False)
            if "__init__" in vars(value):
                yield from _check_raises(init.node, doc, init, value.__init__)
        return
    if kind != "function" and _is_override(owner, name.rpartition(".")[2], value):
        return
    first = kind in ("method", "property", "classmethod")
    if kind != "property" and not _refuses(value):
        yield from _check_args(node, doc, skip=first)
        yield from _check_result(node, doc)
    yield from _check_raises(node, doc, place, value)
    yield from _check_annotations(node, skip=first)


def _fields(value: Any) -> list[str]:
    """The arguments of a class whose constructor is written from its fields."""
    if hasattr(value, "_fields") and hasattr(value, "_make"):
        return list(value._fields)
    if "__dataclass_fields__" in vars(value):
        return [f.name for f in dataclasses.fields(value) if f.init]
    return []


def _described(node: ast.ClassDef, doc: Docstring) -> list[str]:
    """The fields that the class names in backquotes, or that have a docstring of their own."""
    below = [
        field.target.id
        for field, text in pairwise(node.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    ]
    return [*below, *re.findall(r"``(\w+)``", doc.text)]


def _is_override(cls: type, name: str, value: Any) -> bool:
    """Whether it is a base class's method again, with the same parameters, which says the rest."""
    bases = [vars(base).get(name) for base in cls.__mro__[1:]]
    base = next((b for b in bases if inspect.isfunction(b)), None)
    return base is not None and [*inspect.signature(base).parameters] == [
        *inspect.signature(value).parameters
    ]


def _parameters(node: Function, skip: int) -> list[ast.arg]:
    """The parameters in the order of the signature, without the first ``skip``."""
    spec = node.args
    names = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
    return [a for a in names if a is not None][skip:]


def _check_args(node: Function, doc: Docstring, skip: int) -> Iterator[str]:
    yield from _compare([a.arg for a in _parameters(node, skip)], doc)


def _compare(names: list[str], doc: Docstring, known: Sequence[str] = ()) -> Iterator[str]:
    """Hold the parameters to the entries; those with an underscore may be left out."""
    entries = [*doc.entries("Args"), *doc.entries("Attributes"), *known]
    missing = [n for n in names if n not in entries and not n.startswith("_")]
    more = [n for n in doc.entries("Args") if n not in names]
    if missing:
        yield f"Args lacks {', '.join(missing)}"
    if more:
        yield f"Args names {', '.join(more)}, which it does not take"
    in_order = [n for n in names if n in doc.entries("Args")]
    if not more and doc.entries("Args") != in_order:
        yield "Args is not in the order of the parameters"


def _check_result(node: Function, doc: Docstring) -> Iterator[str]:
    described = [name for name in ("Returns", "Yields") if doc.sections.get(name)]
    if node.returns is None:  # another fault
        return
    result = ast.unparse(node.returns)
    if result not in NO_RESULT and not described:
        yield "has no Returns"
    if result in NO_RESULT and described:
        yield f"has {described[0]}, and returns nothing"


def _check_raises(node: ast.AST, doc: Docstring, place: Place, value: Any) -> Iterator[str]:
    space = getattr(inspect.unwrap(value), "__globals__", {})
    named = tuple(_error(name, space) for name in doc.entries("Raises"))
    raised = sorted(errors_of(node, place.helpers))
    missing = [name for name in raised if not issubclass(_error(name, space), named)]
    if missing:
        yield f"Raises lacks {', '.join(missing)}"


def _error(name: str, space: Mapping[str, Any]) -> type[BaseException]:
    """The class of errors of this name, in a module or elsewhere; a new one where there is none."""
    places = (space, vars(builtins), vars(stretto.errors), vars(np.linalg))
    return next((place[name] for place in places if name in place), type(name, (Exception,), {}))


def _check_annotations(node: Function, skip: int, result: bool = True) -> Iterator[str]:
    bare = [a.arg for a in _parameters(node, skip) if a.annotation is None]
    if bare:
        yield f"no annotation of {', '.join(bare)}"
    if result and node.returns is None:
        yield "no annotation of the result"


def main() -> int:
    """Print what is wrong, once for each definition; return 1 where something is."""
    faults: dict[tuple[Path, int, str], Fault] = {}
    for name, value in public_names():
        for fault in faults_of(name, value):
            faults.setdefault((fault.path, fault.line, fault.text), fault)
    print(*sorted(faults.values()), sep="\n", end="\n" if faults else "")
    print(f"docstrings: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
