"""``stretto.scipy.integrate``: integrals of samples.

NumPy's function, also under SciPy's name.
"""

from stretto._engine.core.guarded import guard_module
from stretto.numpy import trapezoid

__all__ = ["trapezoid"]

guard_module(__name__)
