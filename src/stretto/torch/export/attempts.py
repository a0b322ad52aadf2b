"""Exports by PyTorch, for sizes that vary where it can, and without its own logs and warnings.

Three exports are tried in turn: one that asks whether sizes are 1, one that takes for granted that
they are two or more, and one for the sizes of the example. PyTorch logs each operation that it
failed to follow, prints the graph that it had so far, and warns of deprecations in its own code;
what a user must know is in our errors.

An export follows the module's own course with an example. Where that asks for a size, PyTorch keeps
the answer as a guard, with the line that asked; ranges come from ``Dim``. Both are kept with the
program, as conditions, and checked at each call.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from typing import Any

import sympy  # pyright: ignore[reportMissingImports]
import torch  # pyright: ignore[reportMissingImports]
from torch.export import Dim, ExportedProgram  # pyright: ignore[reportMissingImports]
from torch.fx.experimental import _config  # pyright: ignore[reportMissingImports]
from torch.utils._sympy.numbers import int_oo  # pyright: ignore[reportMissingImports]
from torch.utils._sympy.printers import PythonPrinter  # pyright: ignore[reportMissingImports]

from stretto._engine.core.threads import Lock
from stretto.torch.export.failures import PYTORCH, is_ours, written
from stretto.torch.programs.torch_graph import Condition, names, value_of
from stretto.torch.trace.substitutes import not_unrolled

_LOCK = Lock()
_blocks: list[object] = []
_levels: dict[logging.Logger, int] = {}


@contextmanager
def quiet() -> Iterator[None]:
    """Let PyTorch's exporter neither log, nor print, nor warn inside the block.

    Whoever sets ``TORCH_LOGS`` asked for the log, and gets it.
    """
    if os.environ.get("TORCH_LOGS"):
        with warnings.catch_warnings(action="ignore"):
            yield
        return
    _silence()
    try:
        printed: Any = _WithoutGraphs(sys.stderr)
        with warnings.catch_warnings(action="ignore"), redirect_stderr(printed):
            yield
    finally:
        _restore()


def _silence() -> None:
    """Raise the levels of PyTorch's loggers; those that are made later inherit from ``torch``."""
    with _LOCK:
        if not _blocks:
            names = [n for n in logging.root.manager.loggerDict if n.startswith("torch.")]
            for logger in map(logging.getLogger, ["torch", *names]):
                if logger.level != logging.NOTSET or logger.name == "torch":
                    _levels[logger] = logger.level
                    logger.setLevel(logging.CRITICAL + 1)
        _blocks.append(None)


def _restore() -> None:
    with _LOCK:
        _blocks.pop()
        if not _blocks:
            for logger, level in _levels.items():
                logger.setLevel(level)
            _levels.clear()


class _WithoutGraphs(io.TextIOBase):
    """Passes on what is written, but for the graphs that PyTorch's exporter prints."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Write the text, unless the exporter printed it."""
        if sys._getframe(1).f_globals.get("__name__") != "torch.export._trace":
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream behind this one."""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@dataclasses.dataclass(frozen=True)
class Export:
    """An exported program.

    Args:
        program: the program.
        least: the size from which on it holds: 1 if it asked for ones, or else 2.
    """

    program: ExportedProgram
    least: int


def any_batch(leaf: Any) -> Any:
    """Return the exporter's word for an axis 0 of any size."""
    several = isinstance(leaf, torch.Tensor) and leaf.ndim > 0 and leaf.shape[0] > 1
    return {0: Dim.AUTO} if several else None


def export(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Any, fix: bool
) -> Export:
    """Export for sizes that vary as ``shapes`` say, or for those of the example if that is None.

    ``fix`` allows the latter where PyTorch fails at the former. Raises what ``torch.export``
    raises.
    """

    def attempt(shapes: Any, least: int) -> Export:
        with asking_for_ones() if least == 1 else nullcontext(), not_unrolled():
            program = torch.export.export(
                module, tuple(args), dict(kwargs), dynamic_shapes=shapes, strict=False
            )
            conditions_of(program, least=least)
        return Export(program, least)

    attempts = [] if shapes is None else [(shapes, 1), (shapes, 2)]
    attempts += [(None, 2)] if fix else []
    error: Exception | None = None
    for asked, least in attempts:
        try:
            found = attempt(asked, least)
        except Exception as raised:
            if is_ours(raised) and not isinstance(raised, Unchecked):
                raise  # it will not come in in another way either
            error, raised.__cause__ = raised, error
            continue
        if fix or least == 1:
            return found
        try:  # names of dimensions may have been all that failed
            return attempt(relaxed(shapes), 1)
        except Exception:
            return found
    assert error is not None
    raise error


_CHOOSING = {
    ("_ops.py", "__call__"),  # all that is written in C++
    ("_decomp/decompositions.py", "matmul"),
    ("_subclasses/fake_impls.py", "conv"),
}
"""Functions of PyTorch that ask about sizes to choose between ways to the same values."""

_CDIST = 25
"""Up to so many rows ``cdist`` sums squares of differences."""


class Unchecked(NotImplementedError):
    """A program has a condition that no call can check."""


def asking_for_ones() -> Any:
    """Return a context in which an export keeps what the module decides by whether a size is 1.

    Otherwise PyTorch takes for granted that sizes which vary are two or more, without a guard.
    """
    return _config.patch(backed_size_oblivious=True)


def relaxed(shapes: Any) -> Any:
    """Return dynamic shapes with hints in place of named dimensions.

    PyTorch refuses names if it asks whether a size is 1, though on its own behalf.
    """
    match shapes:
        case Mapping():
            return {key: relaxed(part) for key, part in shapes.items()}
        case tuple() | list():
            return type(shapes)([relaxed(part) for part in shapes])
        case Dim():
            bounds = {"min": shapes.min, "max": shapes.max}
            finite = {name: int(n) for name, n in bounds.items() if isinstance(n, int) and n}
            return Dim.AUTO(**finite) if finite else Dim.AUTO
    return shapes


def conditions_of(exported: ExportedProgram, *, least: int | None) -> tuple[Condition, ...]:
    """Return the conditions on the named sizes of an exported program's arguments.

    ``least`` is the size from which on the export holds: 1 if it was asking for ones, or else 2.
    None takes PyTorch's word, which calls programs with one that were exported for two or more.

    Raises:
        Unchecked: one cannot be written as arithmetic of sizes of arguments.
    """
    known, environment = _sizes_of_arguments(exported)
    found: dict[str, Condition] = {}
    bounds: set[str] = set()
    for expression, location in _guards(environment):
        text = text_of(expression)
        bounds.add(_bound(expression))
        if expression is sympy.true or _is_choice_of_a_way(expression, text, location):
            continue
        if text is None or not names(text) <= known:
            if any([_is_of_base(environment, symbol) for symbol in expression.free_symbols]):
                continue  # an example that is a view of another tensor, whose sizes mean nothing
            raise Unchecked(
                f"from_torch: the module decides by {expression} "
                f"({_place_of(location) or 'in an unknown place'}), which cannot be checked in a "
                f"call: fix the sizes with dynamic_batch=False, or without dynamic_shapes"
            )
        found.setdefault(text, Condition(text, _place_of(location)))
    for name, lower, upper in _ranges(exported, known):
        ends = [f"{name} <= {upper}"] if upper is not None else []
        if lower > 2 or least is not None:
            lower = max(lower, least or 0)
            ends += [f"{name} >= {lower}"] if lower > 1 else []
        for text in ends:
            if text not in bounds:  # the others come of guards
                found.setdefault(text, Condition(text))
    return tuple(found.values())


def drop_checks(exported: ExportedProgram) -> None:
    """Take PyTorch's checks of guards out of a program, whose guards are known.

    Traced again they ask anew, and for more than is needed: ``n < 32`` in place of
    ``n == min(n, 32)``.
    """
    exported._guards_code = []


def recall_checks(exported: ExportedProgram) -> None:
    """Have PyTorch trace its checks of guards: one that was read from a file knows no other."""
    _, environment = _sizes_of_arguments(exported)
    if environment is not None and not environment.guards and exported._guards_code:
        exported.run_decompositions({})


def text_of(expression: Any) -> str | None:
    """Return an expression of sizes as text, if it is arithmetic that ``symbolic_sizes`` reads."""
    try:
        text = PythonPrinter().doprint(expression)
        names(text)
    except (NotImplementedError, ValueError, AttributeError):
        return None
    return text


def _sizes_of_arguments(exported: ExportedProgram) -> tuple[set[str], Any]:
    """Return the names of sizes in the arguments' shapes, and what PyTorch knows about them."""
    known: set[str] = set()
    environment: Any = None
    for node in exported.graph.nodes:
        value: Any = node.meta.get("val") if node.op == "placeholder" else None
        is_tensor = isinstance(value, torch.Tensor)
        for n in value.shape if is_tensor else [value]:
            if isinstance(n, torch.SymInt):
                environment = n.node.shape_env
                if is_tensor:
                    known |= {str(symbol) for symbol in n.node.expr.free_symbols}
    return known, environment


def _ranges(
    exported: ExportedProgram, known: Iterable[str]
) -> Iterator[tuple[str, int, int | None]]:
    """Yield the least and the greatest value of each size; None if there is no greatest."""
    spans = {str(symbol): span for symbol, span in exported.range_constraints.items()}
    for name in sorted(known):
        span = spans.get(name)
        if span is None:
            yield name, 0, None
        else:
            yield name, int(span.lower), int(span.upper) if span.upper < int_oo else None


def _guards(environment: Any) -> Iterable[tuple[Any, Any]]:
    """Yield what was decided, in terms of the sizes that are left, and where."""
    if environment is None:
        return
    for guard in environment.guards:
        expression = guard.expr
        while (simpler := expression.xreplace(environment.replacements)) != expression:
            expression = simpler
        yield expression, guard.sloc.framework_loc


def _bound(expression: Any) -> str:
    """Return the bound of a range that PyTorch makes of a guard; empty if it makes none."""
    compared = expression.canonical if isinstance(expression, sympy.Rel) else expression
    if not isinstance(compared, (sympy.Ge, sympy.Gt, sympy.Le, sympy.Lt)):
        return ""
    size, limit = compared.args
    if not (size.is_Symbol and limit.is_Integer):
        return ""
    match compared:
        case sympy.Gt():
            return f"{size} >= {int(limit) + 1}"
        case sympy.Lt():
            return f"{size} <= {int(limit) - 1}"
    return f"{size} {compared.rel_op} {int(limit)}"


def _is_choice_of_a_way(expression: Any, text: str | None, location: Any) -> bool:
    """Say whether PyTorch itself asks this, for layouts or speed, and no values depend on it.

    It asks whether a size is 1, or another that is in its way a special case.
    """
    if text is None or not isinstance(location, traceback.FrameSummary):
        return False
    if (location.filename.removeprefix(PYTORCH), location.name) not in _CHOOSING:
        return False
    if isinstance(expression, sympy.Rel) and _CDIST in expression.args:
        return True
    several = itertools.product((2, 3, 5, 8, 64), repeat=len(names(text)))
    return all([value_of(text, dict(zip(names(text), sizes))) for sizes in several])


def _is_of_base(environment: Any, symbol: Any) -> bool:
    sources = environment.var_to_sources.get(symbol, ())
    return any(["._base" in str(getattr(x, "name", "")) for x in sources])


def _place_of(location: Any) -> str:
    """Return the line that asked, where it is one of a module and not inside PyTorch."""
    if not isinstance(location, traceback.FrameSummary):
        return ""
    inside = location.filename.startswith(PYTORCH)
    if inside and not location.filename.startswith(os.path.join(PYTORCH, "nn", "functional")):
        return ""
    return written(location)
