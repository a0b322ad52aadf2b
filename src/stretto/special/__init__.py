"""``stretto.special``: the functions of ``jax.scipy.special``, accurate to rounding.

One file per family: read ``errors``, ``integrals``, ``gammas`` and so on. Each function is a
single operation: SciPy's where it runs eagerly; where it is compiled, written out in 64 bits
whatever the dtype, so that float32 results are rounded once.

>>> import stretto as st
>>> st.special.ndtr(st.numpy.array([0.0, 1.959964]))
Array([0.5  , 0.975], dtype=float32)
"""

from stretto._engine.core.lazy import exports
from stretto.special.bessel import *
from stretto.special.gammas import *
from stretto.special.entropies import *
from stretto.special.errors import *
from stretto.special.integrals import *

exports(__name__)
