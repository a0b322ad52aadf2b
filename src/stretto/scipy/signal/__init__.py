"""``stretto.scipy.signal``: convolution, spectra, and the removal of trends.

Read ``convolutions``, then ``spectra``.

>>> import stretto as st
>>> st.scipy.signal.convolve(st.numpy.array([1.0, 2.0]), st.numpy.array([1.0, 1.0]))
Array([1., 3., 2.], dtype=float32)
"""

from stretto._engine.core.lazy import exports
from stretto.scipy.signal.convolutions import *
from stretto.scipy.signal.spectra import *

exports(__name__)
