"""``stretto.scipy``: SciPy's functions, which can be compiled, differentiated and vectorized.

Each module is imported when it is first used.

>>> import stretto as st
>>> st.scipy.fft.dct(st.numpy.ones(2)).round(3) + 0.0
Array([4., 0.], dtype=float32)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.scipy import (
        cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
        linalg as linalg, ndimage as ndimage, optimize as optimize, signal as signal,
        sparse as sparse, spatial as spatial, special as special, stats as stats,
    )  # fmt: skip

exports(
    __name__,
    """
    .: cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats
    """,
)
