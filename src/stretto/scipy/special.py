"""``stretto.scipy.special``: the functions of ``stretto.special``, where SciPy and JAX have them.

>>> import stretto as st
>>> st.scipy.special.expit is st.special.expit
True
"""

# ruff: noqa: F403 (stretto.special says what it gives)

from stretto.special import *
