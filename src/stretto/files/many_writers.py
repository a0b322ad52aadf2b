"""A tree written by several processes: each its own parts, and the first where they are.

All is written beside what is there, and becomes what is there when the index is renamed, which is
the last step but tidying up. ``file_parts`` has the index.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from stretto import distributed
from stretto._engine.core.files import open_regular, write_whole
from stretto._engine.core.lazy import LazyModule
from stretto._engine.xla.device import Device, process_count, process_index
from stretto.files import file_elements, file_parts
from stretto.files.file_elements import Elements, Slabs, code_of, pieces_of
from stretto.files.load_files import File

json = LazyModule("json")


T = TypeVar("T")

_ENTRY = "stretto.part"
"""The entry of the metadata of a data file that says which parts are in it."""


class Group(NamedTuple):
    """The processes that save together, as one of them sees it."""

    index: int
    count: int
    sync: Callable[[str], object]
    """Waits until all processes have called it with this name."""
    owner: Callable[[Device], int] = file_elements.owner
    """The process that a device belongs to."""


def all_processes() -> Group:
    """Return all processes that there are."""
    return Group(process_index(), process_count(), _sync)


def _sync(name: str) -> None:
    distributed.sync_global_devices(name)


def write_together(
    path: str, arrays: Mapping[str, np.ndarray | Slabs], words: Mapping[str, str], group: Group
) -> None:
    """Write arrays by name, and metadata; called by all processes, with the same path.

    Arrays that are not split are those of process 0. Raises in every process if it fails in one.
    """
    failed: list[Exception] = []

    def step(run: Callable[[], T]) -> T | None:
        # A process that fails goes on to wait for the others, which would wait for it.
        if not failed:
            try:
                return run()
            except Exception as error:
                failed.append(error)
        return None

    folder, first = file_parts.folder_of(path), group.index == 0
    label = f"stretto.save {os.path.basename(path)}"
    if first:
        step(lambda: _announce(path, folder, os.urandom(8).hex()))
    group.sync(f"{label}: begin")
    save = step(lambda: _announced(folder)) or ""
    step(
        lambda: _write_data(
            os.path.join(folder, file_parts.data_name(save, group.index)), arrays, group
        )
    )
    group.sync(f"{label}: written")
    if first:
        step(lambda: _write_index(path, save, arrays, words, group.count))
    group.sync(f"{label}: done")
    own = file_parts.data_name(save, group.index)
    done = _is_done(path, own)
    if not done:
        file_parts.discard(folder, own)
    if failed:
        raise failed[0]
    if not done:
        raise OSError(
            f"save: {path} could not be written: another process failed, and says why; what was "
            f"there is still there"
        )
    if first:
        file_parts.remove_parts(folder, but=save)


def _announce(path: str, folder: str, save: str) -> None:
    """Tell all processes the name of this save."""
    with contextlib.suppress(FileNotFoundError, PermissionError), open_regular(path, "save"):
        pass  # it is there, and a file
    try:
        os.mkdir(folder)
    except OSError as error:
        if not os.path.isdir(folder):
            raise OSError(
                error.errno,
                f"save: {path} could not be written: there can be no folder {folder}: "
                f"{error.strerror}",
            ) from None
    write_whole(
        os.path.join(folder, file_parts.ANNOUNCED), lambda file: file.write(save.encode()), "save"
    )


def _announced(folder: str) -> str:
    path = os.path.join(folder, file_parts.ANNOUNCED)
    try:
        with open_regular(path, "save") as file:
            return file.read(64).decode()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"save: {path} is not there, which process 0 writes: all processes must save to one "
            f"folder, on a file system that they share"
        ) from None


def _write_data(path: str, arrays: Mapping[str, np.ndarray | Slabs], group: Group) -> None:
    """Write the parts that are this process's to write."""
    parts: dict[str, Elements] = {}
    said: dict[str, Any] = {}
    for name, x in arrays.items():
        for k, part in enumerate(_own_parts(x, group)):
            key = f"{name}.{k}"
            parts[key] = part
            (data,) = pieces_of(part)
            said[key] = [name, part.start, file_parts.block_checksums(data)]
    parts = file_parts.in_order(parts)
    text = file_parts.header(parts, {_ENTRY: json.dumps(said, separators=(",", ":"))})

    def put(file: BinaryIO) -> None:
        file.write(text)
        for part in parts.values():
            for piece in pieces_of(part):
                file.write(piece)

    write_whole(path, put, "save")


def _own_parts(x: np.ndarray | Slabs, group: Group) -> list[file_elements.Part]:
    if not math.prod(x.shape):
        return []
    if isinstance(x, Slabs):
        # One that is on devices of a single process is that of process 0, as others have their own.
        owners = {group.owner(device) for device in x.devices}
        if len(owners) > 1:
            return x.parts(group.index, group.owner)
        return x.parts(group.index, lambda device: 0)
    return [] if group.index else [file_elements.Part((0,) * x.ndim, x.shape, x.dtype, lambda: x)]


def _write_index(
    path: str,
    save: str,
    arrays: Mapping[str, np.ndarray | Slabs],
    words: Mapping[str, str],
    count: int,
) -> None:
    """Write the file that says where all is."""
    folder = file_parts.folder_of(path)
    files: dict[str, int] = {}
    found: dict[str, dict[tuple[int, ...], file_parts.Part]] = {name: {} for name in arrays}
    for process in range(count):
        name = file_parts.data_name(save, process)
        try:
            size, parts = _parts_in(os.path.join(folder, name))
        except FileNotFoundError:
            raise FileNotFoundError(
                f"save: {path} could not be written: process {process} failed, and says why; what "
                f"was there is still there"
            ) from None
        files[name] = size
        for array, start, shape, part in parts:
            there = found.get(array)
            if there is None or start in there or shape != _part_shape(arrays[array]):
                raise ValueError(
                    f"save: {path}: process {process} wrote a part of {array} of shape {shape} at "
                    f"{start}, which is not the tree of process 0: all must save the same one, "
                    f"with the same shardings"
                )
            there[start] = part._replace(file=name)
    grids = {n: (code_of(x.dtype), _grid(path, n, x, found[n])) for n, x in arrays.items()}
    metadata = {**words, file_parts.INDEX: file_parts.index_text(file_parts.Index(files, grids))}
    metadata[file_parts.CHECKSUM] = file_parts.checksum({}, metadata, lambda name: ())
    text = file_parts.header({}, metadata)
    write_whole(path, lambda file: file.write(text), "save")


def _part_shape(x: np.ndarray | Slabs) -> tuple[int, ...]:
    return x.part_shape if isinstance(x, Slabs) else x.shape


def _grid(
    path: str, name: str, x: np.ndarray | Slabs, parts: Mapping[tuple[int, ...], file_parts.Part]
) -> file_parts.Grid:
    """Return where an array is, all of whose parts must be there."""
    shape = _part_shape(x)
    grid = file_parts.Grid(x.shape, shape, ())
    if not math.prod(x.shape):
        return grid
    starts = [
        tuple([k * n for k, n in zip(place, shape, strict=True)])
        for place in np.ndindex(*grid.counts)
    ]
    missing = [start for start in starts if start not in parts]
    if missing:
        raise ValueError(
            f"save: {path}: no process wrote the part of {name} at {missing[0]}"
            f"{f', and {len(missing) - 1} others' if len(missing) > 1 else ''}: all must save the "
            f"same tree, with the same shardings"
        )
    return grid._replace(parts=[parts[start] for start in starts])


def _parts_in(
    path: str,
) -> tuple[int, list[tuple[str, tuple[int, ...], tuple[int, ...], file_parts.Part]]]:
    """Return the size of a data file, and its parts: of which array, from where, how large."""
    with File(path, "save") as file:
        places = file.places()
        said = json.loads(file.metadata[_ENTRY])
        parts = [
            (
                array,
                tuple(start),
                file.stated[key][1],
                file_parts.Part(None, places[key][0], tuple(checksums)),
            )
            for key, (array, start, checksums) in said.items()
        ]
        return file.size(), parts


def _is_done(path: str, data: str) -> bool:
    """Say whether what is there is what was saved with this data file."""
    try:
        with File(path, "save") as file:
            return data in file_parts.parse_index(file.metadata.get(file_parts.INDEX, "{}")).files
    except (OSError, ValueError):
        return False
