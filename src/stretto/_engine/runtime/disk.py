"""Compiled programs kept on disk, for other processes: which, under what key, and how they return.

Layer 6 (runtime). The key is of everything that decides what a program is compiled to: its text,
with all that the planner chose, and what ``pjrt.conditions`` names. The lines of the user's source
are not in it, so that a program outlives an edit above it; what has other lines is compiled anew
when its text is asked for. Trouble with files is never an error: it is logged, once of each kind,
and programs are compiled. Next, read ``cache``.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from stretto._engine.core.config import config
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.machine import cache_directory, processor
from stretto._engine.core.types import ArrayType
from stretto._engine.core.version import VERSION
from stretto._engine.runtime import pjrt, store
from stretto._engine.runtime.pjrt import Executable, Options

__all__ = ["FromDisk", "Place", "folder", "place_of"]

_LINES = re.compile(r"^#u\d+ = loc\(.*\)\n", re.MULTILINE)
"""The positions in the user's source, as ``lower.stablehlo`` writes them at the end."""

_DIGEST = hashlib.sha256().digest_size
_said: set[bool] = set()
"""Whether it was said that files are unsafe, and that they cannot be written."""
_processor = functools.cache(processor)
_logging = LazyModule("logging")


class FromDisk(Executable):
    """A compiled program that another process may have compiled, from elsewhere in a source."""

    __slots__ = ("_options", "_same_lines")

    def __init__(
        self,
        loaded: Any,
        out_types: Sequence[ArrayType],
        text: str,
        options: Options,
        same_lines: bool,
    ) -> None:
        super().__init__(loaded, out_types, text)
        self.from_disk = True
        self._options = options
        self._same_lines = same_lines

    def as_text(self) -> str:
        """The optimised HLO, with the lines of this program."""
        if self._same_lines:
            return super().as_text()
        return pjrt.compile_text(self.text, (), self._options).as_text()


class Place(NamedTuple):
    """Where a program is kept."""

    folder: str
    key: str
    text: str
    options: Options

    def load(self, out_types: Sequence[ArrayType]) -> Executable | None:
        """The program, if it is there."""
        try:
            content = store.read(self.folder, self.key, config.disk_cache_size)
        except OSError as error:
            _remark(self.folder, error)
            return None
        if content is None:
            return None
        loaded = pjrt.deserialised(content[_DIGEST:], self.text, self.options)
        if loaded is None:
            return None
        same_lines = content[:_DIGEST] == _digest(self.text)
        return FromDisk(loaded, out_types, self.text, self.options, same_lines)

    def keep(self, executable: Executable) -> None:
        """Keep the program, unless the runtime has no bytes for it, or there is no space."""
        content = pjrt.serialised(executable)
        if content is None:
            return
        try:
            data = _digest(self.text) + content
            store.write(self.folder, self.key, data, config.disk_cache_size)
        except OSError as error:
            _remark(self.folder, error)


def folder() -> str | None:
    """Where programs are kept; ``None``: nowhere."""
    base = cache_directory()
    return os.path.join(base, "programs") if base else None


def place_of(text: str, options: Options) -> Place | None:
    """Where the program of this text is kept; ``None`` where it is not to be."""
    at = folder() if config.disk_cache else None
    conditions = pjrt.conditions(text, options) if at else None
    if at is None or conditions is None:
        return None
    about = [VERSION.encode(), _processor().encode(), conditions, _LINES.sub("", text).encode()]
    key = hashlib.sha256(b"".join([b"%d\n" % len(part) + part for part in about])).hexdigest()
    return Place(at, key, text, options)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _remark(folder: str, error: OSError) -> None:
    """Say what is wrong with the files, and the way out; of each kind of trouble the first."""
    unsafe = isinstance(error, store.Unsafe)
    if unsafe in _said:
        return
    _said.add(unsafe)
    if unsafe:
        said = f"compiled programs on disk are used where only you can have written them: {error}"
        way = "or set STRETTO_CACHE_DIR to a folder that only you can write"
    else:
        said = f"compiled programs cannot be kept in {folder}: {error.strerror}"
        way = "set STRETTO_CACHE_DIR to a folder that you can write, or STRETTO_DISK_CACHE to 0"
    _logging.getLogger("stretto").warning("%s; %s", said, way)
