"""``stretto.special``: the functions of ``jax.scipy.special``, accurate to rounding.

One file per family: read ``errors``, ``integrals``, ``gammas`` and so on. Each function is a
single operation: SciPy's where it runs eagerly; where it is compiled, written out in 64 bits
whatever the dtype, so that float32 results are rounded once.

>>> import stretto as st
>>> st.special.ndtr(st.numpy.array([0.0, 1.959964]))
Array([0.5  , 0.975], dtype=float32)
"""

# ruff: noqa: F403 (each file's __all__ lists what it exports)

from stretto._engine.core.guarded import guard_module as _guard_module
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

_guard_module(__name__)
