"""Compiled programs that call Python functions while they run.

Such a program runs in the thread of its caller, and has finished when the call returns. It runs on
a separate XLA client with its own threads: the function that it calls may run other programs, and
those would wait for ever if all threads of their client were waiting for functions. Programs that
call nothing stay on the main client; a program that calls functions, and is itself run by such a
function, gets the client one level further. On a GPU there is one client alone (``partitions``):
what a function computes there is computed on the CPU.
"""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from stretto._engine import xla
from stretto._engine.core.interpreter import constant
from stretto._engine.core.threads import Turn, holding, in_child, once
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.lowering.text import TOKEN, HostCall, Text
from stretto._engine.native import native
from stretto._engine.xla import pjrt
from stretto._engine.xla.array import Array
from stretto._engine.xla.clients import Runtime, runtime_of_calls
from stretto._engine.xla.options import Options
from stretto._engine.xla.pjrt import Executable

T = TypeVar("T")


class _Depth(threading.local):
    """Counts the programs, nested in each other, that wait for the function this thread runs."""

    depth = 0


_thread = _Depth()


_running: set[Any] = set()
"""A lock for each such program that is running in any thread; its call holds the lock."""

in_child(_running.clear)


def effects_barrier() -> None:
    """Wait until the callbacks of all calls made so far, in any thread, have returned.

    A call returns only after its own callbacks, so this is for calls made by other threads. Inside
    a callback it does not wait.

    >>> import stretto as st
    >>> st.debug.effects_barrier()
    """
    if not _thread.depth:
        for call in list(_running):
            with call:
                _running.discard(call)  # an interrupt may have left it there


_failures: dict[int, BaseException] = {}
_numbers = itertools.count()
_NUMBER = re.compile(r"a function that the program called failed, as number (\d+)")
_KEPT = 256  # of several that fail at once the runtime reports only one, so the others pile up


class _Failure(Exception):
    """Tells the runtime that a function failed, and which failure it is."""


def _failure_of(error: BaseException) -> _Failure:
    """Keep the error, and return the exception that tells the runtime its number."""
    number = next(_numbers)
    while len(_failures) >= _KEPT:
        _failures.pop(next(iter(_failures)), None)
    _failures[number] = error
    return _Failure(f"a function that the program called failed, as number {number}")


_interrupts: list[BaseException] = []
"""Errors that a signal handler raised between the runtime and ``CallingExecutable._called``.

When the runtime calls Python from its own threads, Python first handles the signals that arrived in
the meantime, before any ``try`` of ours has begun.
"""


def _guard(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function in C, which no signal interrupts, to note exceptions but failures.

    Without the extension, such an interrupt becomes a ``JaxRuntimeError`` that mentions it.
    """
    return function if native is None else native.Guard(function, _Failure, _interrupts)


def _original(error: BaseException) -> BaseException:
    """Return the exception of the user's function that made the runtime raise this error."""
    match = _NUMBER.search(str(error))
    if match:
        return _failures.pop(int(match[1]), error)
    if _interrupts and threading.current_thread() is threading.main_thread():
        return _interrupts.pop()
    return error


class Functions:
    """The functions that a program calls, by number, as the runtime calls them.

    ``depth`` is what ``_Depth`` says while one runs. Whoever runs the program keeps this: jaxlib
    keeps what it calls, and Python's garbage collector cannot look into jaxlib, so that a strong
    reference from there would make a cycle that is never freed.
    """

    __slots__ = ("__weakref__", "_calls", "depth")

    def __init__(self, calls: Sequence[HostCall], depth: int) -> None:
        self._calls = calls
        self.depth = depth

    def listed(self) -> list[Callable[..., Any]]:
        """Return the functions for the runtime."""
        this = weakref.ref(self)
        return [
            _guard(lambda *arrays, i=i: this()._called(i, arrays))  # type: ignore[union-attr]
            for i in range(len(self._calls))
        ]

    def deepen(self) -> None:
        """Go one level further than this thread, which is about to run the program."""
        self.depth = max(self.depth, _thread.depth + 1)

    def _called(self, number: int, arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
        """Call the function; the runtime calls this, in any of its threads."""
        try:
            return holding(_thread, "depth", self.depth, _call, self._calls[number], arrays)
        except BaseException as error:
            failure = _failure_of(error)
        raise failure


def to_the_end(run: Callable[[], T]) -> T:
    """Return what ``run()`` gives, once the functions that it has a program call have returned.

    An exception that one raises is raised here, unchanged.
    """
    running = threading.Lock()
    _running.add(running)
    try:
        with running:
            return run()
    except RuntimeError as error:
        failure = _original(error)
    finally:
        _running.discard(running)
    raise failure  # outside the except clause, which would set its __context__


class _Results:
    """Buffers, with the interface of the runtime's results."""

    __slots__ = ("_buffers",)

    def __init__(self, buffers: list[Any]) -> None:
        self._buffers = buffers

    def consume_with_handlers(self, handlers: Sequence[Any]) -> list[Any]:
        """Return the buffers, which need no more handling."""
        return self._buffers


class CallingExecutable(Executable):
    """A compiled program that calls Python functions.

    An exception that one raises is raised by the call, unchanged. Results are NumPy's views of the
    buffers of the client that it runs on: where they are passed to such a program again, as in a
    training loop, these buffers are found, and nothing is handed from one client to another.
    """

    __slots__ = ("_at", "_calls", "_compiling", "_functions", "_options", "_out_types", "on_arrays")

    def __init__(self, text: Text, out_types: Sequence[ArrayType], options: Options) -> None:
        self._calls = text.calls
        self._out_types = tuple(out_types)
        self._options = options
        self._at: dict[int, Executable] = {}
        self._functions: dict[int, Functions] = {}
        self._compiling: dict[Any, Turn] = {}
        self.text = text
        self.from_disk = False
        self.loaded = self._compiled(1).loaded
        self.handlers = []
        self.run, self.on_arrays = self._run, self._on_arrays

    def _compiled(self, depth: int) -> Executable:
        return once(self._at, self._compiling, depth, lambda: self._made(depth))

    def _made(self, depth: int) -> Executable:
        functions = self._functions[depth] = Functions(self._calls, depth)
        callbacks = functions.listed()
        at = runtime_of_calls(depth)
        entry = xla.disk.entry_of(self.text, self._options, (), at)
        found = entry and entry.found(callbacks)
        if found:
            self.from_disk = True
            return Executable(found[0], self._out_types, self.text, at)
        made = pjrt.compile_text(self.text, self._out_types, self._options, callbacks, at)
        if entry:
            entry.keep(made)
        return made

    def _on_arrays(self, arrays: Sequence[Any]) -> list[Array]:
        hosts = self._results(arrays, _as_input)
        return [Array(h, t) for h, t in zip(hosts, self._out_types, strict=True)]

    def _run(self, buffers: Sequence[Any]) -> _Results:
        hosts = self._results(buffers, _handed_over)
        return _Results(
            [pjrt.to_device(h, t, True) for h, t in zip(hosts, self._out_types, strict=True)]
        )

    def _results(
        self, given: Sequence[Any], as_input: Callable[[Any, Runtime], Any]
    ) -> list[np.ndarray]:
        """Return NumPy's views of the results, once all functions have returned."""
        depth = _thread.depth + 1
        compiled, at = self._compiled(depth), runtime_of_calls(depth)
        inputs = [as_input(x, at) for x in given]
        outs = to_the_end(lambda: pjrt.run_to_the_end(compiled, inputs))
        return [pjrt.to_host(out) for out in outs]


def _handed_over(buffer: Any, at: Runtime) -> Any:
    """Return the buffer of another client with the same memory."""
    return _there(pjrt.to_host(buffer), at)


def _there(host: np.ndarray, at: Runtime) -> Any:
    """Return the buffer of a client with the elements of an array that nobody writes to."""
    return pjrt.to_device(host, array_type(host.shape, host.dtype), True, at)


def _as_input(array: Array, at: Runtime) -> Any:
    """Return the buffer of this client for an array: that which it is a view of, or another.

    The array is a view of the other from then on, so that the next call finds it.
    """
    host = array.to_host()
    buffer = pjrt.buffer_of(host, at)
    if buffer is None:
        buffer = _there(host, at)
        if host.dtype.kind != "V":  # those have no views, and would be copied again each time
            array._host = pjrt.to_host(buffer)
    return buffer


def _call(call: HostCall, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    typed = zip(arrays[: len(call.types)], call.types, strict=True)
    results = call.function([constant(x, t.weak_type) for x, t in typed])
    hosts = [np.ascontiguousarray(r.to_host()).reshape(r.shape) for r in results]
    if call.ordered:
        hosts.append(np.zeros(TOKEN.shape, TOKEN.dtype))
    return tuple(hosts)
