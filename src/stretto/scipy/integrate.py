"""``stretto.scipy.integrate``: integrals of samples.

NumPy's function, under SciPy's name for it too.
"""

from stretto.numpy import trapezoid

__all__ = ["trapezoid"]
