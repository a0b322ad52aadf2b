"""Public functions whose errors leave them without this package's frames, at no cost to a call.

A ``try`` around the body of each public function would do it, and costs nothing until an error
passes; a wrapper would cost each call 90 ns, as long as a small addition takes, and be another
object than the function. So ``guard`` gives a function's compiled code what the compiler makes of
such a ``try``: a row in the table of exceptions, and the few instructions that it leads to, which
hand the error to ``leaving`` and raise it again.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dis import opmap
from types import CodeType, FunctionType, ModuleType
from typing import Any

leaving: list[Callable[[BaseException], None]] = []
"""Are called with each error that leaves a guarded function; ``boundary`` enters one."""

_PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
_NO_CALL_OF_ONES_OWN = (  # what runs the body is not the call
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
)
_CONSTANT = -1

# How each Python calls a constant with the exception, which is on the stack above what was handled
# before: instructions, arguments, and the words after each where the interpreter keeps notes.
_CALL = {
    (3, 11): (
        ("PUSH_NULL", 0, 0),
        ("LOAD_CONST", _CONSTANT, 0),
        ("COPY", 3, 0),
        ("PRECALL", 1, 1),
        ("CALL", 1, 4),
    ),
    (3, 12): (("PUSH_NULL", 0, 0), ("LOAD_CONST", _CONSTANT, 0), ("COPY", 3, 0), ("CALL", 1, 3)),
    (3, 13): (("LOAD_CONST", _CONSTANT, 0), ("PUSH_NULL", 0, 0), ("COPY", 3, 0), ("CALL", 1, 3)),
}
_CALL[3, 15] = _CALL[3, 14] = _CALL[3, 13]
_RESUME = 2 if sys.version_info[:2] == (3, 15) else 1
"""The length of ``RESUME``, after which a handler may begin: in 3.15 it has a word of notes."""
_STACK = 8
"""The depth that the handler needs: four for the call, the exceptions, and where it was raised."""


def guard(value: Any) -> Any:
    """Have errors that leave a function, or the methods of a class, pass through ``leaving``.

    It stays the same object. Of a module the public functions and classes are meant, by ``__all__``
    if it has that; of any other object the methods of its class. What is not this package's own is
    left alone, as is everything in a Python whose instructions are not known.

    Args:
        value: a function, a class, a module, or an object of the package.

    Returns:
        The value.
    """
    if isinstance(value, FunctionType):
        _guard_function(value)
    elif isinstance(value, type):
        if value.__module__.startswith("stretto") and _members.get(value) != len(vars(value)):
            _members[value] = len(vars(value))
            for member in list(vars(value).values()):
                for function in _functions_of(member):
                    _guard_function(function)
            for base in value.__bases__:
                guard(base)
    elif isinstance(value, ModuleType) and value.__name__.startswith("stretto."):
        names = vars(value).get("__all__") or [x for x in vars(value) if not x.startswith("_")]
        for name in names:
            if not isinstance(member := vars(value).get(name), ModuleType):
                guard(member)
    elif type(value).__module__.startswith("stretto."):
        guard(type(value))
    return value


_members: dict[type, int] = {}
"""The number of members that each class had when it was looked through."""

_guarded: dict[CodeType, CodeType] = {}
"""The code of functions, and with the handler; that of all closures of one function is one."""


def _functions_of(member: Any) -> Iterator[FunctionType]:
    if isinstance(member, property):
        members: tuple[Any, ...] = (member.fget, member.fset, member.fdel)
    elif isinstance(member, (classmethod, staticmethod)):
        members = (member.__func__,)
    else:
        members = (member,)
    for function in members:
        if isinstance(function, FunctionType):
            yield function


def _guard_function(function: FunctionType) -> None:
    code = function.__code__
    if (
        sys.version_info[:2] in _CALL
        and code.co_filename.startswith(_PACKAGE)
        and not code.co_flags & _NO_CALL_OF_ONES_OWN
        and _leave not in code.co_consts[-1:]
    ):
        found = _guarded.get(code)
        if found is None:
            found = _guarded[code] = with_handler(code)
        function.__code__ = found


def _leave(error: BaseException) -> None:
    for call in leaving:
        call(error)


def with_handler(code: CodeType) -> CodeType:
    """Put ``except BaseException as error: _leave(error); raise`` around all of the code."""
    words = code.co_code
    body = len(words) // 2
    handler, called, cleanup = _handler(len(code.co_consts))
    resume = next(i for i in range(body) if words[2 * i] == opmap["RESUME"])
    rows = [
        *_around(_rows(code.co_exceptiontable), resume + _RESUME, body),
        (body, body + called, body + cleanup, 1 << 1 | 1),
    ]
    return code.replace(
        co_code=words + handler,
        co_consts=(*code.co_consts, _leave),
        co_exceptiontable=b"".join([_row(*row) for row in rows]),
        co_linetable=code.co_linetable + _without_lines(len(handler) // 2),
        co_stacksize=max(code.co_stacksize, _STACK),
    )


@functools.cache
def _handler(constant: int) -> tuple[bytes, int, int]:
    """Give the instructions, with ``_leave`` as the constant of this number; where two parts begin.

    These are what follows the call, and what is run if that was interrupted: what was handled
    before is so again, and the interrupt goes on, as in the compiler's own handlers.
    """
    # PUSH_EXC_INFO leaves on the stack what was handled before, and above it the exception.
    call = [("PUSH_EXC_INFO", 0, 0), *_CALL[sys.version_info[:2]], ("POP_TOP", 0, 0)]
    result = _assemble(call, constant)
    called = len(result) // 2
    result += _assemble([("SWAP", 2, 0), ("POP_EXCEPT", 0, 0), ("RERAISE", 0, 0)], constant)
    cleanup = len(result) // 2
    result += _assemble([("COPY", 3, 0), ("POP_EXCEPT", 0, 0), ("RERAISE", 1, 0)], constant)
    return result, called, cleanup


def _assemble(operations: list[tuple[str, int, int]], constant: int) -> bytes:
    """Return the instructions as bytes, with room for the interpreter's notes."""
    result = bytearray()
    for name, argument, notes in operations:
        number = constant if argument == _CONSTANT else argument
        if number > 0xFF:
            result += bytes([opmap["EXTENDED_ARG"], number >> 8])
        result += bytes([opmap[name], number & 0xFF]) + bytes(2 * notes)
    return bytes(result)


def _without_lines(words: int) -> bytes:
    """Return rows of the table of lines for instructions on none; each is for eight at most."""
    return b"".join(
        [bytes([0x80 | 15 << 3 | min(words - start, 8) - 1]) for start in range(0, words, 8)]
    )


# The table of exceptions, as CPython's Objects/exception_handling_notes.txt describes it: from
# which instruction to which, where the handler is, and at what depth of the stack it is run, with
# the lowest bit saying whether it is told where the exception was raised.
_Row = tuple[int, int, int, int]


def _rows(table: bytes) -> Iterator[_Row]:
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(value)
            value = 0
    for i in range(0, len(numbers), 4):
        start, size, target, depth = numbers[i : i + 4]
        yield start, start + size, target, depth


def _around(rows: Iterator[_Row], start: int, stop: int) -> Iterator[_Row]:
    """Yield the rows, and between them those that lead to the handler, which stands at the end."""
    for row in rows:
        if start < row[0]:
            yield start, row[0], stop, 0
        yield row
        start = row[1]
    if start < stop:
        yield start, stop, stop, 0


def _row(start: int, stop: int, target: int, depth: int) -> bytes:
    result = bytearray()
    for i, number in enumerate((start, stop - start, target, depth)):
        parts = [number & 0x3F]
        while number := number >> 6:
            parts.insert(0, number & 0x3F | 0x40)
        if i == 0:
            parts[0] |= 0x80  # where a row begins
        result += bytes(parts)
    return bytes(result)
