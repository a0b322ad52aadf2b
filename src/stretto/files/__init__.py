"""Trees of arrays in files: ``save``, ``load``, and ``load_header``.

A file is in the safetensors format, data only: loading one runs no code. ``names``: what the arrays
are called, and how the tree is described · ``elements``: leaves as arrays that the format has ·
``slabs``: those that are split over devices · ``headers``, ``writing`` · ``grids``: where arrays
are in files, and any box of one · ``opening``, ``placing``, ``reading`` · ``parts``, ``together``:
what several processes write · ``checksums``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.files.reading import Header as Header, load as load, load_header as load_header
    from stretto.files.writing import save as save
    from stretto.files import together

exports(
    __name__,
    """
    .reading: Header load load_header
    .writing: save
    """,
)
