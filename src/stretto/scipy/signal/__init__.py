"""``stretto.scipy.signal``: convolution, spectra, and the removal of trends.

Read ``convolutions``, then ``spectra``.

>>> import stretto as st
>>> st.scipy.signal.convolve(st.numpy.array([1.0, 2.0]), st.numpy.array([1.0, 1.0]))
Array([1., 3., 2.], dtype=float32)
"""

# ruff: noqa: F403 (each file's __all__ lists what it exports)

from stretto._engine.core.guarded import guard_module as _guard_module
from stretto.scipy.signal.convolutions import *
from stretto.scipy.signal.spectra import *

_guard_module(__name__)
