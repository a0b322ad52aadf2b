"""``Checkpoint``: a model on disk, of which headers alone are read until a tensor is asked for.

A checkpoint is a safetensors file, an index file, or a folder: of shards with an index, of one
file, or of components with a file or an index in each, as diffusers has them. Tensors of a
component are named after it, ``unet/conv_in.weight``. Files of pickles are never opened.

Elements are read with ``read_into``, into memory that the caller has: files of any size take none
here (docs/decisions/0019-safetensors.md says why they are not mapped).
"""

from __future__ import annotations

import os
import re
import reprlib
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.files import checked_path, read_small
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import is_inexact
from stretto._engine.xla.array import Array
from stretto.files.file_elements import item_size, restored, true_type
from stretto.files.file_parts import INDEX as PARTS
from stretto.files.file_parts import aligned
from stretto.files.load_files import File, open_file, warn_of_lost
from stretto.files.names import Damaged, refuse_twice

__all__ = ["Checkpoint", "Stored"]

json = LazyModule("json")

SUFFIX = ".safetensors"
INDEX = ".safetensors.index.json"
_USUAL = ("model", "diffusion_pytorch_model", "adapter_model")
"""What loaders look for first."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_LARGEST_TEXT = 1 << 26  # bytes of an index or a configuration
_SHARD = re.compile(r"(.+)-(\d{5,})-of-(\d{5,})\.safetensors")


class Stored(NamedTuple):
    """A tensor in a file."""

    code: str
    """The format's code of the dtype, such as ``BF16``."""
    shape: tuple[int, ...]
    file: str
    """The file, relative to the checkpoint's folder."""
    offset: int
    """The offset of its first byte in the file."""
    nbytes: int

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype."""
        return true_type("", self.code, (), None).dtype

    def __str__(self) -> str:
        return f"{self.code}[{','.join(map(str, self.shape))}]"


class Component(NamedTuple):
    """A file, or files with an index, in a folder of the checkpoint."""

    folder: str
    """Relative to the checkpoint; "" for its own folder."""
    stem: str
    """What the files are called, but for numbers and endings: ``model``."""
    files: tuple[str, ...]

    @property
    def prefix(self) -> str:
        """Return what names of its tensors begin with."""
        return f"{self.folder}/" if self.folder else ""


class Checkpoint(Mapping[str, Array]):
    """Open a model on disk: a mapping from the names of its tensors to arrays, read when asked for.

    Args:
        path: a ``.safetensors`` file, a ``.safetensors.index.json`` file, or a folder that holds
            one of these, shards, or components with such files.

    Raises:
        TypeError: ``path`` is no path.
        ValueError: a file is damaged, is a pickle, or the index and the files disagree, with all
            that was found.
        OSError: there is nothing at the path, or it cannot be read.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> st.save(path, {"fc": {"weight": snp.ones((2, 3))}})
    >>> model = st.merge.Checkpoint(path)
    >>> list(model), model.stored["fc.weight"].shape
    (['fc.weight'], (2, 3))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = checked_path(path, "Checkpoint")
        self.path = text
        is_folder = os.path.isdir(text)
        self.folder = text if is_folder else os.path.dirname(text) or os.curdir
        self.is_folder = is_folder or text.endswith(INDEX)
        """Whether there are files of the model beside those of its tensors."""
        self._files: dict[str, File] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._places: dict[str, str] = {}  # as indexes say
        weakref.finalize(self, _close, self._files)
        problems: list[str] = []
        self.components = tuple(self._components(problems))
        self.stored: dict[str, Stored] = {}
        """The tensors by name, in the order of the files."""
        self.metadata: dict[str, str] = {}
        try:
            for component in self.components:
                self._read_headers(component, problems)
            alone = os.path.basename(text)  # which the problems of a file begin with
            if problems:
                raise ValueError(
                    f"Checkpoint: {text} cannot be read:\n" + "\n".join(f"  {p}" for p in problems)
                    if len(problems) > 1
                    else f"Checkpoint: {text}: {problems[0].removeprefix(f'{alone}: ')}"
                )
        except BaseException:
            self.close()
            raise

    # What is there

    def _components(self, problems: list[str]) -> Iterator[Component]:
        if os.path.isdir(self.path):
            yield from self._in_folder(problems)
            return
        name = os.path.basename(self.path)
        if name.endswith(PICKLES):
            raise ValueError(_PICKLED.format(self.path))
        if name.endswith(INDEX):
            yield self._indexed("", name, problems)
        else:
            os.stat(self.path)  # the system's own words where there is no such file
            yield Component("", name.removesuffix(SUFFIX), (name,))

    def _in_folder(self, problems: list[str]) -> Iterator[Component]:
        own = self._of_folder("", problems)
        if own is not None:
            yield own
            return
        found = False
        for entry in sorted(os.scandir(self.folder), key=lambda e: e.name):
            if entry.is_dir() and not entry.name.startswith("."):
                component = self._of_folder(entry.name, problems)
                if component is not None:
                    found = True
                    yield component
        if not found and not problems:
            names = sorted(os.listdir(self.folder))
            pickles = [name for name in names if name.endswith(PICKLES)]
            if pickles:
                raise ValueError(_PICKLED.format(os.path.join(self.folder, pickles[0])))
            raise ValueError(
                f"Checkpoint: {self.path} has no {SUFFIX} file; it has "
                f"{', '.join(names[:8]) or 'nothing'}"
            )

    def _of_folder(self, folder: str, problems: list[str]) -> Component | None:
        names = sorted(os.listdir(os.path.join(self.folder, folder)))
        indexes = [name for name in names if name.endswith(INDEX)]
        plain = [name for name in names if name.endswith(SUFFIX)]
        stems = {name.removesuffix(INDEX) for name in indexes}
        whole = [n for n in plain if not (m := _SHARD.fullmatch(n)) or m[1] not in stems]
        if len(indexes) + len(whole) > 1:  # others are variants, which loaders take if told to
            usual = [
                n
                for n in (*indexes, *whole)
                if n.removesuffix(INDEX).removesuffix(SUFFIX) in _USUAL
            ]
            if len(usual) == 1:
                indexes, whole = ([], usual) if usual[0] in whole else (usual, [])
                plain = whole
        if len(indexes) == 1 and not whole:
            return self._indexed(folder, indexes[0], problems)
        if not indexes and len(plain) == 1 and not _SHARD.fullmatch(plain[0]):
            return Component(
                folder, plain[0].removesuffix(SUFFIX), (os.path.join(folder, plain[0]),)
            )
        if not indexes and not plain:
            return None
        shards = [_SHARD.fullmatch(name) for name in plain]
        if not indexes and all(shards):
            first: Any = shards[0]
            count = int(first[3]) if len(first[3]) < 7 else 0
            expected = [f"{first[1]}-{i + 1:05d}-of-{first[3]}{SUFFIX}" for i in range(count)]
            if plain == expected:
                return Component(folder, first[1], tuple(os.path.join(folder, n) for n in plain))
            missing = sorted(set(expected) - set(plain))
            problems.append(
                f"of the shards {first[1]}-…-of-{first[3]} these are missing: {_some(missing)}"
                if missing
                else f"the shards do not belong together: {_some(plain)}"
            )
            return None
        problems.append(
            f"{os.path.join(self.folder, folder)} has several models, {_some(indexes + whole)}: "
            f"name one of these files"
        )
        return None

    def _indexed(self, folder: str, name: str, problems: list[str]) -> Component:
        """Return the files that an index lists, after a look at what it says."""
        where = os.path.join(folder, name)
        try:
            places = read_table(os.path.join(self.folder, where))["weight_map"]
            files = sorted(set(places.values()))
            if not all(isinstance(f, str) and os.path.basename(f) == f and f.endswith(SUFFIX)
                       for f in files):  # fmt: skip
                raise ValueError(f"weight_map names what is no {SUFFIX} file beside it")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            problems.append(f"{where} is no index of safetensors files: {error!s:.200}")
            return Component(folder, name.removesuffix(INDEX), ())
        self._places |= {
            f"{folder}/{n}" if folder else n: os.path.join(folder, f) for n, f in places.items()
        }
        return Component(
            folder, name.removesuffix(INDEX), tuple(os.path.join(folder, f) for f in files)
        )

    def _read_headers(self, component: Component, problems: list[str]) -> None:
        indexed = self._places
        for name in component.files:
            path = os.path.join(self.folder, name)
            try:
                file = open_file(path, "Checkpoint")
            except Damaged as error:
                problems.append(f"{name}: {error}")
                continue
            except FileNotFoundError:
                problems.append(f"{name} is missing, which the index names")
                continue
            self._files[name] = file
            if PARTS in file.metadata:
                problems.append(f"{name} has arrays in data files: load it, and save it in one")
                continue
            self._locks[name] = threading.Lock()
            self.metadata |= file.metadata
            for tensor, (offset, size) in file.places().items():
                full = component.prefix + tensor
                code, shape = file.stated[tensor]
                if full in self.stored:
                    problems.append(f"{full} is in {self.stored[full].file} and in {name}")
                elif indexed and indexed.get(full) != name:
                    said = indexed.get(full)
                    problems.append(
                        f"{full} is in {name}, and the index "
                        + (f"says {said}" if said else "does not list it")
                    )
                self.stored[full] = Stored(code, shape, name, offset, size)
        there = {n for n in indexed if n.startswith(component.prefix)} if indexed else set()
        lost = [n for n in there if n not in self.stored and indexed[n] in self._files]
        for tensor in sorted(lost):
            problems.append(f"{tensor} is not in {indexed[tensor]}, where the index has it")

    # As a mapping

    def __getitem__(self, name: str) -> Array:
        stored = self.stored[name]
        raw = aligned(stored.nbytes)
        self.read_into(name, 0, raw.data)
        lost: list[str] = []
        type = true_type(name, stored.code, stored.shape, None)
        array: Any = restored(raw, type, None, name, lost)
        warn_of_lost(lost, "Checkpoint")
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def __repr__(self) -> str:
        size = sum(s.nbytes for s in self.stored.values())
        return f"Checkpoint({self.path!r}, tensors={len(self)}, nbytes={size:,})"

    # Reading

    def read_into(self, name: str, begin: int, out: memoryview) -> None:
        """Read bytes of a tensor, from byte ``begin`` on, until ``out`` is full.

        Args:
            name: the tensor's.
            begin: the first byte, of the tensor's.
            out: memory that is filled.

        Raises:
            Damaged: the file has become shorter.
            OSError: it cannot be read.
        """
        stored = self.stored[name]
        file = self._files[stored.file].raw
        done = 0
        with self._locks[stored.file]:
            file.seek(stored.offset + begin)
            while done < len(out):
                count = file.readinto(out[done:])
                if not count:
                    raise Damaged(
                        f"{os.path.join(self.folder, stored.file)} ended while {name} was read, at "
                        f"byte {stored.offset + begin + done}: it was cut short"
                    )
                done += count

    def identity(self) -> list[list[Any]]:
        """Return what tells these files from others.

        Returns:
            Of each file its name, size, time of the last change in nanoseconds, and number on the
            disk.
        """
        found = []
        for name, file in self._files.items():
            status = os.fstat(file.raw.fileno())
            found.append([name, status.st_size, status.st_mtime_ns, status.st_ino])
        return found

    def configuration(self, folder: str) -> dict[str, Any] | None:
        """Return what ``config.json`` in a component's folder says, if there is one.

        Args:
            folder: the component's, relative to the checkpoint.

        Returns:
            The table, or ``None``.

        Raises:
            ValueError: it is no JSON, or no table.
        """
        path = os.path.join(self.folder, folder, "config.json")
        if not self.is_folder or not os.path.isfile(path):
            return None
        return read_table(path, "Checkpoint: ")

    def close(self) -> None:
        """Close the files; tensors cannot be read any more."""
        _close(self._files)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict = 3, 4, 4
_SHORT.maxstring = _SHORT.maxother = 200


def shown(x: object) -> str:
    """Return what a file says, in few words: its ``repr`` may be without bounds.

    >>> shown([[0] * 100] * 100)
    '[[0, 0, 0, 0, ...], [0, 0, 0, 0, ...], [0, 0, 0, 0, ...], [0, 0, 0, 0, ...], ...]'
    """
    try:
        return _SHORT.repr(x)
    except ValueError:  # an integer of thousands of digits
        return f"{type(x).__name__} with very long numbers"


def read_table(path: str, prefix: str = "") -> dict[str, Any]:
    """Return what a file of JSON says, which must be a table; messages begin with the prefix.

    A link is followed, since the cache of a hub has links to files of contents.
    """
    raw = read_small(os.path.realpath(path), _LARGEST_TEXT)
    if raw is None:
        raise Damaged(
            f"{prefix}{path} is no regular file, or has more than {_LARGEST_TEXT:,} bytes"
        )
    try:
        refuse_twice(raw)
        said = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{prefix}{path} is no JSON: {error!s:.200}") from None
    if not isinstance(said, dict):
        raise Damaged(f"{prefix}{path} must have a table, got {shown(said)}")
    return said


def _close(files: Mapping[str, File]) -> None:
    for file in files.values():
        file.close()


_PICKLED = (
    "Checkpoint: {} is a pickle, which can run any code when it is loaded, and is not opened: "
    "write it as safetensors, as save_pretrained(..., safe_serialization=True) does"
)


def elements(stored: Stored) -> int:
    """Return the number of elements."""
    return stored.nbytes // item_size("", stored.code)


def is_real(stored: Stored) -> bool:
    """Say whether a tensor holds floats of two bytes or more."""
    try:
        dtype = stored.dtype
    except ValueError:
        return False
    return is_inexact(dtype) and dtype.kind != "c" and dtype.itemsize > 1


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
