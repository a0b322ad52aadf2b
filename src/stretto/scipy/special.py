"""``stretto.scipy.special``: the functions of ``stretto.special``, where SciPy and JAX have them.

>>> import stretto as st
>>> st.scipy.special.expit is st.special.expit
True
"""

# ruff: noqa: F403 (stretto.special lists what it exports)

from stretto._engine.core.guarded import guard_module as _guard_module
from stretto.special import *

_guard_module(__name__)
