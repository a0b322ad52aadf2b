"""``stretto.special``: the functions of ``jax.scipy.special``, right to rounding.

One file a family: read ``errors``, ``integrals``, ``gammas`` and so on. A function is one
operation: at rest it is SciPy's, compiled it is written out in 64 bits whatever the dtype, so that
float32 results are rounded once.

>>> import stretto as st
>>> st.special.ndtr(st.numpy.array([0.0, 1.959964]))
Array([0.5  , 0.975], dtype=float32)
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto.special.bessel import *
from stretto.special.betas import *
from stretto.special.entropies import *
from stretto.special.errors import *
from stretto.special.faddeeva import *
from stretto.special.gammas import *
from stretto.special.harmonics import *
from stretto.special.hypergeometric import *
from stretto.special.integrals import *
from stretto.special.owens import *
from stretto.special.sums import *
