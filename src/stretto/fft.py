"""``stretto.fft``: discrete Fourier transforms, as in ``stretto.numpy.fft``.

>>> import stretto as st
>>> st.fft.fftfreq(4)
Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto._engine.core.lazy import exports
from stretto.numpy.fft import *

exports(__name__)
