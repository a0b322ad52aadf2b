"""``stretto.numpy.fft``: discrete Fourier transforms.

Read ``applying``, then ``transforms``, ``real_transforms``, ``frequencies``. The primitive is
``ops/fft``, under its JAX name ``stretto.lax.fft``.

>>> import stretto.numpy as snp
>>> snp.fft.rfft(snp.array([1.0, 2.0, 3.0, 4.0]))
Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
"""

from stretto._engine.core.lazy import exports
from stretto.numpy.fft.frequencies import *
from stretto.numpy.fft.real_transforms import *
from stretto.numpy.fft.transforms import *

exports(__name__)
