"""Compiled programs kept in memory: by program, by text, and by operation and types.

A function that is traced again, such as the body of an eager loop at each call, or a lambda, gives
the same text, and is not compiled again. So programs outlive their functions, but only so many
bytes of them: the least recently used go first. One that is let go of stays for as long as its
function, or anybody else, has it, and is found for as long.
"""

from __future__ import annotations

import collections
import functools
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from stretto._engine import xla
from stretto._engine.core.caches import WeakTable
from stretto._engine.core.config import config
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.primitive import meshes
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.threads import Turn, once
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.lowering.text import Text
from stretto._engine.passes.prepare import for_platform, prepare
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.callbacks import CallingExecutable
from stretto._engine.xla.options import Options
from stretto._engine.xla.pjrt import Executable, compile_text, quick

hashlib = LazyModule("hashlib")


E = TypeVar("E", bound=Executable)

MOST = 1 << 25
"""The bytes of programs that are kept though their functions may be gone."""

_EACH, _PER_CHARACTER = 340_000, 70
"""The bytes of a program, measured: 340 kB where the text has 400 characters, 659 with 5,100, and
6.2 MB with 84,000. XLA tells no size of its code on the CPU."""


def estimate_bytes(executable: Executable) -> int:
    """Return the bytes that a compiled program takes, by estimate."""
    return _EACH + _PER_CHARACTER * len(executable.text)


def digest(text: str) -> bytes:
    """Return what stands for a text in a table, which then keeps none."""
    return hashlib.blake2b(text.encode(), digest_size=32).digest()


class Recent(Generic[E]):
    """A table of programs; see above. It has what ``once`` asks of a dictionary."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self._used: collections.OrderedDict[Hashable, E] = collections.OrderedDict()
        self._there: WeakTable[E] = WeakTable()

    def get(self, key: Hashable) -> E | None:
        """Return the program, which is the most recently used one now; None if it is gone."""
        found = self._used.get(key) or self._there.get(key)
        return None if found is None else self.setdefault(key, found)

    def setdefault(self, key: Hashable, executable: E) -> E:
        """Keep it, unless there is one, and return the one that is kept."""
        executable = self._used.setdefault(key, self._there.keep(key, executable))
        try:
            self._used.move_to_end(key)
            while len(self._used) > 1 and self.bytes() > MOST:
                self._used.popitem(last=False)
        except KeyError:  # another thread has removed it
            pass
        return executable

    def bytes(self) -> int:
        """Return what those take that were used of late, by estimate."""
        return sum([estimate_bytes(executable) for executable in list(self._used.values())])

    def __len__(self) -> int:
        return len(self._used)


# The caches


_logging = LazyModule("logging")
_by_text: Recent[Executable] = Recent()

_compiling: dict[Any, Turn] = {}


def executable(program: Program) -> Executable:
    """Return the compiled form of a program, compiled once and kept with the program."""
    result = program.cache.get("executable")
    if result is None:
        start = time.perf_counter()
        text = lower(for_platform(prepare(program), None))
        lowered = time.perf_counter()
        result = program.cache["executable"] = compile_cached(text, program.out_types)
        log(
            program.name,
            lambda: ", ".join(map(repr, program.in_types)),
            result,
            lower=lowered - start,
            compile=time.perf_counter() - lowered,
        )
    return result


def log(name: str, signature: Callable[[], str], executable: Executable, **seconds: float) -> None:
    """Log how long a compilation took, if ``config.log_compiles`` is set."""
    if config.log_compiles:
        done = "compiled"
        if executable.from_disk:
            done, seconds["load"] = "loaded from disk", seconds.pop("compile")
        elif "quick compile" in seconds:
            done = "compiled quickly"
        took = ", ".join(f"{what} {1000 * s:.1f} ms" for what, s in seconds.items())
        logger = _logging.getLogger("stretto")
        logger.warning("%s %s for (%s): %s", done, name, signature(), took)


def compile_cached(text: Text, out_types: Sequence[ArrayType], options: Options = ()) -> Executable:
    """Return the compiled form of this text. Threads wait for each other only over the same text.

    Programs that call Python functions are kept on disk alone: equal texts may call different ones.
    """
    return _supply_constants(_compile_once(text, out_types, options), text)


def compiled_quickly(
    text: Text, out_types: Sequence[ArrayType], options: Options = ()
) -> tuple[Executable, bool]:
    """Return the optimized form of this text if it is at hand, else one that was compiled quickly.

    The second result says whether it is the quick one, which is kept nowhere. Programs that call
    Python functions are optimized at once, as are those for which ``options`` decide all that the
    quick ones would.
    """
    both = {**dict(quick()), **dict(options)}
    if text.calls or len(both) == len(options):
        return compile_cached(text, out_types, options), False
    key = _key(text, options)
    if _by_text.get(key) is None:
        entry = xla.disk.entry_of(text, options)
        loaded = entry and entry.load(out_types)
        if not loaded:
            executable = compile_text(text, out_types, tuple(sorted(both.items())))
            return _supply_constants(executable, text), True
        _by_text.setdefault(key, loaded)
    return compile_cached(text, out_types, options), False


def _supply_constants(executable: Executable, text: Text) -> Executable:
    """Return the program with the large constants of its text, if any."""
    return _Supplied(executable, text.arrays) if text.arrays else executable


def _key(text: Text, options: Options) -> bytes:
    return digest(f"{text}{options}" if options else text)


class _Supplied(Executable):
    """A compiled program that passes its large constants after its arguments."""

    __slots__ = ("_compiled", "on_arrays")

    def __init__(self, compiled: Executable, arrays: Sequence[np.ndarray]) -> None:
        values = [Array(a, array_type(a.shape, a.dtype)) for a in arrays]
        run, self.loaded, self.text = compiled.run, compiled.loaded, compiled.text
        self.handlers = compiled.handlers
        self.run = lambda buffers: run([*buffers, *[v.to_buffer() for v in values]])
        self._compiled, self.from_disk = compiled, compiled.from_disk
        on_arrays = compiled.on_arrays
        self.on_arrays = on_arrays and (lambda own: on_arrays([*own, *values]))

    def as_text(self) -> str:
        """Return the optimized HLO."""
        return self._compiled.as_text()


def _compile_once(text: Text, out_types: Sequence[ArrayType], options: Options) -> Executable:
    if text.calls:
        return CallingExecutable(text, out_types, options)
    key = _key(text, options)
    return once(_by_text, _compiling, key, lambda: _load_or_compile(text, out_types, options))


def _load_or_compile(text: Text, out_types: Sequence[ArrayType], options: Options) -> Executable:
    """Return the executable from disk; if it is not there, it is compiled and kept there."""
    entry = xla.disk.entry_of(text, options)
    result = entry and entry.load(out_types)
    if not result:
        result = compile_text(text, out_types, options)
        if entry:
            entry.keep(result)
    return result


def run_program(program: Program, args: Sequence[Array]) -> list[Array]:
    """Compile a program, unless that was done before, and run it on arrays."""
    if any([a.__class__ in SHARDED for a in args]) or meshes(program.effects):
        return xla.sharded.run_placed(program, args)
    buffers = executable(program)([a.to_buffer() for a in args])
    return [Array(None, v.type, b) for v, b in zip(program.outputs, buffers, strict=True)]


_OPERATIONS = 256
"""The most programs of one operation that are kept, some 340 kB each."""


def _one_operation(
    primitive: Any, types: tuple[ArrayType, ...], out_types: tuple[ArrayType, ...]
) -> Program:
    inputs = [Var(t) for t in types]
    outputs = [Var(t) for t in out_types]
    return Program(inputs, [Equation(primitive, inputs, outputs)], outputs, primitive.name)


_kept_operation = functools.lru_cache(_OPERATIONS)(_one_operation)


def run_primitive(
    primitive: Any,
    types: tuple[ArrayType, ...],
    out_types: tuple[ArrayType, ...],
    args: Sequence[Array],
) -> list[Array]:
    """Compile and run the program of one operation."""
    if primitive.interned:
        return run_program(_kept_operation(primitive, types, out_types), args)
    kept = vars(primitive).setdefault("_alone", {})  # freed with the programs or text that it holds
    if types not in kept:
        kept[types] = _one_operation(primitive, types, out_types)
    return run_program(kept[types], args)


def clear() -> None:
    """Forget what was compiled; what is on disk stays."""
    _kept_operation.cache_clear()
    _by_text.clear()
    if SHARDED:
        xla.sharded.clear()
