"""``stretto.scipy.signal``: convolution, spectra, and trends removed.

Read ``convolutions``, ``detrending``, ``segments``, ``spectra``, ``inverse``.

>>> import stretto as st
>>> st.scipy.signal.convolve(st.numpy.array([1.0, 2.0]), st.numpy.array([1.0, 1.0]))
Array([1., 3., 2.], dtype=float32)
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto.scipy.signal.convolutions import *
from stretto.scipy.signal.detrending import *
from stretto.scipy.signal.inverse import *
from stretto.scipy.signal.spectra import *
