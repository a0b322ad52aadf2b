"""Trees of arrays in files: ``save``, ``load``, and ``load_header``.

A file is in the safetensors format, data only: loading one runs no code. ``names`` names the arrays
and describes the tree; ``file_elements`` has leaves as arrays that the format has, whole or split
over devices; ``file_parts`` has headers and checksums, and any box of an array that lies in parts.
``save_files`` and ``load_files`` use them, and ``many_writers`` has several processes write.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.files.load_files import Header as Header, load as load, load_header as load_header
    from stretto.files.save_files import save as save
    from stretto.files import many_writers

exports(
    __name__,
    """
    .load_files: Header load load_header
    .save_files: save
    """,
)
