"""``stretto.scipy.integrate``: integrals of samples.

NumPy's function, also under SciPy's name.
"""

from stretto._engine.core.lazy import exports
from stretto.numpy import trapezoid

__all__ = ["trapezoid"]

exports(__name__)
