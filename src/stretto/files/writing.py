"""``save``: a tree of arrays to one safetensors file, whole or not at all.

Layer 7 (files). The file is written beside its place, brought to the disk, and renamed. Next, read
``reading``.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from typing import Any

import safetensors
import safetensors.numpy

from stretto.core import tree
from stretto.files.elements import stored
from stretto.files.names import DESCRIPTION, describe, leaf_names

__all__ = ["save"]


def save(
    path: str | os.PathLike[str], tree: Any, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a tree of arrays and numbers to one file, in the safetensors format.

    Arrays are called by the way that leads to them (``layers.0.weight``), so other readers of the
    format, such as PyTorch's, find a module's arrays by their usual names. The structure, Python
    numbers, NumPy arrays, and dtypes that the format lacks are described in the file's metadata,
    where ``load`` finds them. ``metadata`` adds text by name.

    A file that was there is replaced when the new one is complete and on the disk, so that whoever
    opens the path, whenever this is interrupted, finds the old one or the new. A process that is
    killed meanwhile leaves a folder ``.stretto-…`` beside it.

    Raises ``TypeError`` for a leaf that is no array nor number, or metadata that is no text;
    ``ValueError`` where two leaves would have one name; ``TracedValueError`` inside a
    transformation; ``OSError`` where the file cannot be written.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> st.save(path, {"fc": [snp.ones(2), None], "step": 3}, {"note": "first"})
    >>> st.load(path)
    {'fc': [Array([1., 1.], dtype=float32), None], 'step': 3}
    """
    arrays, words = _parts(tree, metadata)
    place = os.path.realpath(os.fspath(path))  # a link stays, and what it leads to is replaced
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"save: {os.fspath(path)}: there is no directory {folder}")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".stretto-") as beside:
        made = os.path.join(beside, "new")
        mode = _usual_mode(place, made)
        try:
            safetensors.numpy.save_file(arrays, made, words)
        except safetensors.SafetensorError as error:
            raise OSError(f"save: {os.fspath(path)} could not be written: {error}") from None
        os.chmod(made, mode)
        _to_disk(made)
        os.replace(made, place)
    _to_disk(folder)


def _parts(root: Any, metadata: Mapping[str, str] | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays by name, and the metadata."""
    words = dict(metadata or {})
    for key, value in words.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise TypeError(
                f"save: metadata must be text by name, and metadata[{key!r}] is a "
                f"{type(value).__name__}; use str(...) or json.dumps(...)"
            )
    if DESCRIPTION in words:
        raise ValueError(f"save: metadata[{DESCRIPTION!r}] is where the tree is described")
    arrays, kinds, dtypes = {}, {}, {}
    flat, paths = tree.leaves(root), tree.paths(root, "tree")
    for name, leaf, where in zip(leaf_names(root, "save"), flat, paths, strict=True):
        arrays[name], kind, dtype = stored(leaf, where, "save")
        if kind is not None:
            kinds[name] = kind
        if dtype is not None:
            dtypes[name] = dtype
    words[DESCRIPTION] = describe(root, kinds, dtypes)
    return arrays, words


def _usual_mode(place: str, made: str) -> int:
    """The permissions of the file there, or else those that this process gives a new file."""
    try:
        return stat.S_IMODE(os.stat(place).st_mode)
    except FileNotFoundError:
        os.close(os.open(made, os.O_CREAT | os.O_WRONLY, 0o666))
        return stat.S_IMODE(os.stat(made).st_mode)


def _to_disk(path: str) -> None:
    """Return when the file, or the directory's list of files, is on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
