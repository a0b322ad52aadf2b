"""Trees of arrays in files: ``save``, ``load``, and ``load_header``.

A file is in the safetensors format, data only: loading one runs no code. ``names``: what the arrays
are called, and how the tree is described · ``elements``: leaves as arrays that the format has ·
``writing`` · ``reading``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand

if TYPE_CHECKING:
    from stretto.files.reading import Header, load, load_header
    from stretto.files.writing import save
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.files.reading": "Header load load_header",
            "stretto.files.writing": "save",
        },
    )

__all__ = ["Header", "load", "load_header", "save"]
