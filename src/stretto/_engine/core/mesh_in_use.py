"""The mesh in use: what a specification alone, without a mesh, is over.

It is a setting, ``config.mesh``, so that programs are traced for it.
"""

from __future__ import annotations

import threading
from typing import Any

from stretto._engine.core.config import config
from stretto._engine.core.mesh import Mesh


class _Entered(threading.local):
    """The blocks of meshes that this thread is in, the last one last."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []


_entered = _Entered()


def enter(mesh: Mesh) -> Mesh:
    """Begin a block, of this thread, with this mesh in use."""
    block = config(mesh=mesh)
    block.__enter__()
    _entered.blocks.append(block)
    return mesh


def leave(mesh: Mesh, *error: object) -> None:
    """End the block that began last."""
    _entered.blocks.pop().__exit__(*error)


class set_mesh:  # in lower case, as a function is: it is called for what it does
    """Take a mesh into use: a ``PartitionSpec`` alone is then over it.

    Called alone it holds for all threads from there on; as a context manager, for the block, in
    this thread.

    Args:
        mesh: the mesh; None for none.

    Raises:
        ConfigError: it is not a mesh.

    >>> import stretto as st, stretto.numpy as snp
    >>> with st.sharding.set_mesh(st.make_mesh((1,), ("data",))):
    ...     st.device_put(snp.ones(2), st.P("data")).sharding.spec
    PartitionSpec('data')
    """

    def __init__(self, mesh: Mesh | None) -> None:
        self._before = config.mesh
        config.mesh = mesh
        self._mesh = mesh
        self._block: Any = None

    def __enter__(self) -> Mesh | None:
        config.mesh = self._before
        self._block = config(mesh=self._mesh)
        self._block.__enter__()
        return self._mesh

    def __exit__(self, *error: object) -> None:
        self._block.__exit__(*error)


def get_mesh() -> Mesh | None:
    """Return the mesh in use.

    Returns:
        The mesh; None if there is none.

    >>> import stretto as st
    >>> st.sharding.get_mesh() is None
    True
    """
    return config.mesh
