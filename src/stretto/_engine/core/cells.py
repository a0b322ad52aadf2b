"""Cells, whose value changes, and what a traced body reads and writes of those made outside of it.

A cell is made under an interpreter, its home. Under that one it is read and written directly.
Inside of a body that is being recorded it stands for a value captured there, and a write stays in
the body until it ends; whoever records the body gets the new value out, as one more result, and
writes it to the cell then. So programs stay closed, and know of no cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from stretto._engine.core.errors import EscapedTracerError, RefError
from stretto._engine.core.interpreter import state
from stretto._engine.core.program import Var
from stretto._engine.core.recorder import Recorder, Traced
from stretto._engine.core.types import ArrayType


class Cell:
    """A value that changes; compared and hashed as an object."""

    __slots__ = ("__weakref__", "_home", "_value", "type")

    type: ArrayType

    def __init__(self, value: Any) -> None:
        here = state.interpreter
        self._home = None if here.at_rest else here
        self._value = value
        self.type = value.type

    @property
    def lasts(self) -> bool:
        """Say whether it was made outside of all transformations."""
        return self._home is None

    def read(self) -> Any:
        """Return the value, as the current interpreter sees it."""
        innermost = None
        for here in self._inside():
            if here.borrows:
                borrowed = _borrowed(here)
                if self in borrowed.values:
                    return borrowed.values[self]
                innermost = innermost or borrowed
        return self._value if innermost is None else innermost.capture(self)

    def write(self, value: Any) -> None:
        """Replace the value, which has the type of this cell, as far as the body around ends."""
        for here in self._inside():
            if here.borrows:
                self.read()  # whether it can be reached
                _borrowed(here).write(self, value)
                return
            if getattr(value, "interpreter", None) is here or not here.passes_writes:
                raise RefError(
                    f"a reference of type {self.type} made outside of a function cannot take a "
                    f"value that is {here.maps} there{here.began()}: {here.instead}"
                )
        self._value = value

    def _inside(self) -> Iterator[Any]:
        """Yield the interpreters from the current one to this cell's home, which is not among them.

        Raises where it leads past the home, when it gets there.
        """
        here = state.interpreter
        while here is not self._home:
            if here is None or here.at_rest:
                if here is not None and self._home is None:
                    return
                self._unreachable()
            yield here
            here = here.parent

    def _unreachable(self) -> NoReturn:
        if self._home is not None and self._home.ended:
            raise EscapedTracerError(
                f"a reference of type {self.type} outlived the transformation that it was made in"
                f"{self._home.began()}: return its value, ref[...], from the function, and make "
                f"another reference of it outside"
            )
        raise RefError(
            f"a reference of type {self.type} made inside of a transformed function cannot be used "
            f"in a derivative rule or a callback: pass its value, ref[...], as an argument"
        )


class Borrowed:
    """Hold what one body that is being recorded sees of cells from outside."""

    __slots__ = ("bound", "kept", "may_write", "recorder", "values", "written")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.values: dict[Cell, Any] = {}
        self.written: dict[Cell, None] = {}
        self.bound: Sequence[Cell] = ()
        """The cells whose values the body has as arguments, and returns."""
        self.may_write = False
        """Says whether whoever records the body writes what it wrote."""
        self.kept = False
        """Says whether captured values are to be the cells themselves, to be read at each call."""

    def capture(self, cell: Cell) -> Any:
        """Return the value in the body: an input of its program."""
        if self.recorder.refuses:
            raise RefError(
                f"a reference of type {cell.type} made outside is used in {self.recorder.refuses}, "
                f"which is traced once for all calls: pass its value, ref[...], as an argument"
            )
        v = Var(cell.type)
        self.recorder.captured[id(cell)] = cell
        self.recorder.captured_vars[id(cell)] = v
        value = self.values[cell] = Traced(self.recorder, v)
        return value

    def write(self, cell: Cell, value: Any) -> None:
        """Let the cell have another value in the rest of the body."""
        if cell not in self.bound:
            if not self.may_write:
                raise RefError(
                    f"a reference of type {cell.type} made outside is written in a function from "
                    f"which no write gets out{self.recorder.began()}: return the value, and write "
                    f"it to the reference outside"
                )
            self.written[cell] = None
        self.values[cell] = value

    def present(self, captured: Sequence[Any]) -> list[Any]:
        """Return the captured values, with what cells hold in place of these, unless kept."""
        if self.kept:
            return list(captured)
        return [c.read() if isinstance(c, Cell) else c for c in captured]


def _named_as(fun: Callable[..., Any]) -> Callable[[Any], Any]:
    """Give a body the name of the function that it runs."""

    def named(body: Any) -> Any:
        if hasattr(fun, "__name__"):
            body.__name__ = fun.__name__
        return body

    return named


def _borrowed(recorder: Recorder) -> Borrowed:
    if recorder.borrowed is None:
        recorder.borrowed = Borrowed(recorder)
    return recorder.borrowed


def refusing_cells(fun: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Enter a body that may not even read cells from outside, as what is made of it is kept."""

    def body(*args: Any) -> Any:
        state.interpreter.refuses = name
        return fun(*args)

    return body


def collecting(fun: Callable[..., Any], found: list[Any]) -> Callable[..., Any]:
    """Enter a body that may write to cells from outside; those that it wrote go to ``found``.

    The writes themselves are lost: it is a trial.
    """

    @_named_as(fun)
    def body(*args: Any) -> Any:
        borrowed = _borrowed(state.interpreter)
        borrowed.may_write = True
        result = fun(*args)
        found.extend([cell for cell in borrowed.written if cell not in found])
        return result

    return body


def giving(
    fun: Callable[..., Any], found: list[Any], *, kept: bool = False
) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    """Enter a body of the same arguments that also returns what the ``found`` cells then hold.

    Those that it writes are among these; they are added to the list.
    """

    @_named_as(fun)
    def body(*args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
        borrowed = _borrowed(state.interpreter)
        borrowed.may_write, borrowed.kept = True, kept
        result = fun(*args, **kwargs)
        found.extend([cell for cell in borrowed.written if cell not in found])
        return result, values_of_cells(found)

    return body


def carrying(fun: Callable[..., Any], cells: Sequence[Any]) -> Callable[..., Any]:
    """Return a body whose first argument holds values of these cells.

    It returns its result, and what they then hold.
    """

    @_named_as(fun)
    def body(values: Sequence[Any], *args: Any) -> tuple[Any, tuple[Any, ...]]:
        borrowed = _borrowed(state.interpreter)
        borrowed.bound = cells
        borrowed.values.update(zip(cells, values, strict=True))
        return fun(*args), values_of_cells(cells)

    return body


def values_of_cells(cells: Sequence[Cell]) -> tuple[Any, ...]:
    """Return what they hold now."""
    return tuple([cell.read() for cell in cells])


def write_all(cells: Sequence[Cell], values: Sequence[Any]) -> None:
    """Give each its new value."""
    for cell, value in zip(cells, values, strict=True):
        cell.write(value)
