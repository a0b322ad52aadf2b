"""``save``: a tree of arrays to one safetensors file, whole or not at all.

``core/files`` writes beside the place, brings to the disk, and renames. The format is written here,
as the library would by way of a file of its own, which nobody can tell from one that a killed
process left. Arrays that several processes have parts of go to files of theirs: ``many_writers``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from stretto import files
from stretto._engine.core import tree
from stretto._engine.core.files import checked_path, write_whole
from stretto._engine.core.typing import Tree
from stretto.files import file_parts
from stretto.files.file_elements import Slabs, code_of, pieces_of, stored
from stretto.files.names import DESCRIPTION, describe, leaf_names, ties_of


def save(
    path: str | os.PathLike[str], tree: Tree, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a tree of arrays and numbers to one file, in the safetensors format.

    Arrays are named by the way that leads to them (``layers.0.weight``), so other readers of the
    format, such as PyTorch's, find a module's arrays by their usual names. The structure, Python
    numbers, NumPy arrays, and dtypes that the format lacks are described in the file's metadata,
    where ``load`` finds them. An array that a module holds at two places (tied weights) is written
    once, under the first of its names.

    A file that was there is replaced when the new one is complete and on the disk, so that whoever
    opens the path, whenever this is interrupted, finds the old one or the new. A symbolic link
    stays, and the file that it leads to is replaced. A process that is killed meanwhile leaves a
    file ``.stretto-…`` beside it, which the next ``save`` to that folder removes.

    Arrays that are split over devices of this process are written as if they were whole. Where
    arrays are split over devices of several processes, all of these call ``save`` with the same
    path, on a file system that they share, and each writes its own parts, to a folder beside the
    file (``model.safetensors.parts``); of arrays that are not, those of process 0 are written.

    Args:
        path: the file.
        tree: a tree of arrays and numbers.
        metadata: further entries, strings by name.

    Raises:
        TypeError: a leaf is neither an array nor a number, metadata is not text, or ``path`` is not
            a path.
        ValueError: two leaves would have one name, no file can have the name of the path, or
            processes that save together have different trees.
        TracedValueError: inside a transformation.
        OSError: with the system's ``errno``, the file cannot be written, or the path is that of a
            folder, a device, a FIFO or a socket, which stay as they are; or another process could
            not write its parts.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> st.save(path, {"fc": [snp.ones(2), None], "step": 3}, {"note": "first"})
    >>> st.load(path)
    {'fc': [Array([1., 1.], dtype=float32), None], 'step': 3}
    """
    write(path, tree, metadata)


def write(
    path: str | os.PathLike[str],
    root: Tree,
    metadata: Mapping[str, str] | None,
    *,
    with_checksum: bool = False,
) -> None:
    """Write as ``save`` does, with a checksum of the whole file if asked, for ``load_checked``."""
    text = checked_path(path, "save")
    arrays, words = _parts(root, metadata)
    if all([isinstance(x, np.ndarray) or x.is_here for x in arrays.values()]):
        write_alone(text, arrays, words, with_checksum=with_checksum)
    else:
        files.many_writers.write_together(text, arrays, words, files.many_writers.all_processes())


def write_alone(
    path: str,
    arrays: Mapping[str, np.ndarray | Slabs],
    words: dict[str, str],
    *,
    with_checksum: bool,
) -> None:
    """Write arrays by name, and metadata, to one file; no array that is split is put together."""
    if with_checksum:
        types = {name: (code_of(x.dtype), x.shape) for name, x in arrays.items()}
        words[file_parts.CHECKSUM] = file_parts.checksum(
            types, words, lambda name: pieces_of(arrays[name])
        )
    elements = file_parts.in_order(arrays)
    beginning = file_parts.header(elements, words)

    def put(file: BinaryIO) -> None:
        file.write(beginning)
        for x in elements.values():
            for piece in pieces_of(x):
                file.write(piece)

    write_whole(path, put, "save")
    file_parts.remove_parts(
        file_parts.folder_of(path)
    )  # of a tree that several processes wrote before


def _parts(root: Tree, metadata: Mapping[str, str] | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arrays by name, and the metadata."""
    words = dict(metadata or {})
    for key, value in words.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise TypeError(
                f"save: metadata must be text by name, and metadata[{key!r}] is a "
                f"{type(value).__name__}; use str(...) or json.dumps(...)"
            )
    for key in (DESCRIPTION, file_parts.INDEX):
        if key in words:
            raise ValueError(f"save: metadata[{key!r}] is where the tree is described")
    arrays, kinds, dtypes = {}, {}, {}
    flat, paths = tree.leaves(root), tree.paths(root, "tree")
    names = leaf_names(root, "save")
    ties = ties_of(root, names)
    for name, leaf, where in zip(names, flat, paths, strict=True):
        if name in ties:
            continue
        arrays[name], kind, dtype = stored(leaf, where, "save")
        if kind is not None:
            kinds[name] = kind
        if dtype is not None:
            dtypes[name] = dtype
    words[DESCRIPTION] = describe(root, kinds, dtypes, ties)
    return arrays, words
