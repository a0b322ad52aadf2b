"""Compiled programs kept on disk for other processes: their keys, and how they are loaded.

The key is a hash of everything that decides what a program is compiled to: its text, which includes
what the planner chose, the processor, and what ``pjrt.conditions`` returns. The line numbers of the
user's source are not part of it, so that a program survives an edit above it; if a program with
other lines was loaded, its optimized text is compiled when asked for. Problems with files are never
errors: they are logged, once for each kind, and programs are compiled.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine import VERSION
from stretto._engine.core.config import config
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.machine import cache_directory, processor
from stretto._engine.core.types import ArrayType
from stretto._engine.lowering.text import Text
from stretto._engine.xla import pjrt, store
from stretto._engine.xla.clients import Runtime
from stretto._engine.xla.options import Options
from stretto._engine.xla.pjrt import Executable

_DIGEST = hashlib.sha256().digest_size
_warned: set[bool] = set()
"""The warnings that were given: that files are unsafe (True), or cannot be written (False)."""
_processor = functools.cache(processor)
_logging = LazyModule("logging")


class FromDisk(Executable):
    """A compiled program from disk, perhaps compiled for code on other lines of a source file."""

    __slots__ = ("_options", "_same_lines")

    def __init__(
        self,
        loaded: Any,
        out_types: Sequence[ArrayType],
        text: Text,
        options: Options,
        same_lines: bool,
    ) -> None:
        super().__init__(loaded, out_types, text)
        self.from_disk = True
        self._options = options
        self._same_lines = same_lines

    def as_text(self) -> str:
        """Return the optimized HLO, with the lines of this program."""
        if self._same_lines:
            return super().as_text()
        return pjrt.compile_text(self.text, (), self._options).as_text()


class Entry(NamedTuple):
    """A program's file on disk; ``devices`` are those of choice, if any, of ``at``."""

    folder: str
    key: str
    text: Text
    options: Options
    devices: Sequence[Any] = ()
    at: Runtime | None = None

    def load(self, out_types: Sequence[ArrayType]) -> Executable | None:
        """Return the program, if it is there."""
        found = self.found()
        return found and FromDisk(found[0], out_types, self.text, self.options, found[1])

    def found(self, callbacks: Sequence[Callable[..., Any]] = ()) -> tuple[Any, bool] | None:
        """Return the runtime's form of the program, if kept, and whether it has the same lines.

        It calls ``callbacks`` by number.
        """
        try:
            content = store.read(self.folder, self.key, config.disk_cache_size)
        except OSError as error:
            _warn(self.folder, error)
            return None
        if content is None:
            return None
        compiled = content[_DIGEST:]
        about = self.text, self.options, self.devices, self.at
        loaded = pjrt.deserialize(compiled, *about, callbacks)
        return loaded and (loaded, content[:_DIGEST] == _digest(self.text))

    def keep(self, executable: Executable) -> None:
        """Keep the program, unless the runtime cannot serialize it, or there is no space."""
        content = pjrt.serialize(executable)
        if content is None:
            if config.log_compiles:
                message = "a program is not kept on disk, since the runtime cannot serialize it"
                _logging.getLogger("stretto").warning(message)
            return
        try:
            data = _digest(self.text) + content
            store.write(self.folder, self.key, data, config.disk_cache_size)
        except OSError as error:
            _warn(self.folder, error)


def folder() -> str | None:
    """Return the folder where programs are kept; ``None`` if nowhere."""
    base = cache_directory()
    return os.path.join(base, "programs") if base else None


def entry_of(
    text: Text, options: Options, devices: Sequence[Any] = (), at: Runtime | None = None
) -> Entry | None:
    """Return where the program of this text for these devices is kept.

    It is ``None`` if it is not to be.
    """
    where = folder() if config.disk_cache else None
    conditions = pjrt.conditions(text, options, devices, at) if where else None
    if where is None or conditions is None:
        return None
    about = [VERSION.encode(), _processor().encode(), conditions, text.without_positions().encode()]
    key = hashlib.sha256(b"".join([b"%d\n" % len(part) + part for part in about])).hexdigest()
    return Entry(where, key, text, options, devices, at)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _warn(folder: str, error: OSError) -> None:
    """Log what is wrong with the files, and the way out; once for each kind of problem."""
    unsafe = isinstance(error, store.Unsafe)
    if unsafe in _warned:
        return
    _warned.add(unsafe)
    if unsafe:
        problem = (
            f"compiled programs on disk are used where only you can have written them: {error}"
        )
        way = "or set STRETTO_CACHE_DIR to a folder that only you can write"
    else:
        problem = f"compiled programs cannot be kept in {folder}: {error.strerror}"
        way = "set STRETTO_CACHE_DIR to a folder that you can write, or STRETTO_DISK_CACHE to 0"
    _logging.getLogger("stretto").warning("%s; %s", problem, way)
