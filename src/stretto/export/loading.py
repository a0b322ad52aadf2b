"""``load``: programs from files, whichever of the two kinds a file is.

An artifact of ours is a safetensors file: eight bytes with the length of its header, and that
header, which is JSON. A file of ``jax.export`` is a FlatBuffer without an identifier: it is known
by the table that it begins with, which leads to a portable artifact of StableHLO.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto import export
from stretto._engine.core.files import checked_path, open_regular
from stretto.files.names import Damaged

if TYPE_CHECKING:
    from stretto.export.artifact import Artifact
    from stretto.export.stablehlo_artifact import StableHLO


def load(source: str | os.PathLike[str] | bytes) -> Artifact | StableHLO:
    """Read a program from a file, of ours or of JAX's, without the code that it was traced from.

    What ``Artifact.save`` wrote is an artifact again: it is checked from its first byte to the type
    of each result, and nothing in it is run. What ``StableHLO.save`` or ``jax.export`` wrote is a
    ``StableHLO``: a module that this process has not written is read in a child process first,
    since the runtime's reader may end the process that reads a damaged one; it may have no custom
    calls but those of LAPACK and its like. Either is called with arrays, jitted, differentiated and
    saved again.

    Args:
        source: the path; or the bytes of a file of ``jax.export``.

    Returns:
        The program.

    Raises:
        ValueError: it is damaged, of another kind or of a later version, or has in it what is
            refused, by name.
        TypeError: it is an artifact with 64-bit types, and these are off; or ``source`` is neither
            a path nor bytes.
        FileNotFoundError: there is no such file.
        OSError: it is a folder, a device, a FIFO or a socket.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "square")
    >>> st.export.program(lambda x: x * x, snp.ones(())).save(path)
    >>> float(st.grad(st.export.load(path))(3.0))
    6.0
    >>> st.export.stablehlo(lambda x: x @ x, snp.ones((2, 2))).save(path)
    >>> st.export.load(path)
    StableHLO(function: (float32[2,2]) -> (float32[2,2]), for cpu)
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        content, where = bytes(source), "export.load"
        if _is_safetensors(content):
            raise ValueError(
                f"{where}: these are the bytes of an artifact, whose weights are read from where "
                f"they lie: write them into a file, and load that"
            )
    else:
        where = f"export.load: {checked_path(source, 'export.load')}"
        with open_regular(source, "export.load") as file:
            content = file.read(9)
            if _is_safetensors(content):
                return export.artifact.read(source, where)
            content += file.readall()
    if not export.container.is_container(content):
        raise Damaged(
            f"{where}: it is neither an artifact, as Artifact.save writes it, nor a file of "
            f"StableHLO, as export.stablehlo and jax.export write it"
        )
    return export.stablehlo_artifact.of_bytes(content, where)


def _is_safetensors(begins: bytes) -> bool:
    """Say whether a file that begins so is a safetensors file, if it is whole.

    Its header has less than 4 GiB, and begins with ``{``. A FlatBuffer has something else than
    zeros in the second four bytes, or after them the size of a table's layout, which is even.
    """
    return begins[4:9] == b"\0\0\0\0{"
