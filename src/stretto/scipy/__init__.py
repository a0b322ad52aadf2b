"""``stretto.scipy``: SciPy's functions for arrays that are compiled, differentiated, vectorised.

Each module is imported when it is first used.

>>> import stretto as st
>>> st.scipy.fft.dct(st.numpy.ones(2)).round(3) + 0.0
Array([4., 0.], dtype=float32)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand

if TYPE_CHECKING:
    from stretto.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.scipy": "cluster fft integrate interpolate linalg ndimage optimize signal "
            "sparse spatial special stats"
        },
    )

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]
