"""Trees of arrays in files: ``save``, ``load``, and ``load_header``.

A file is in the safetensors format, data only: loading one runs no code. ``names``: what the arrays
are called, and how the tree is described · ``file_elements``: leaves as arrays that the
format has · ``slabs``: those that are split over devices · ``file_headers`` and their checksums,
``save_files`` · ``file_parts``: where arrays are in files, and any box of one · ``opening``,
``load_files`` · ``many_writers``: what several processes write.
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
