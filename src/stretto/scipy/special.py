"""``stretto.scipy.special``: the functions of ``stretto.special``, where SciPy and JAX have them.

>>> import stretto as st
>>> st.scipy.special.expit is st.special.expit
True
"""

# ruff: noqa: F403 (stretto.special lists what it exports)

from stretto._engine.core.lazy import exports
from stretto.special import *

exports(__name__)
