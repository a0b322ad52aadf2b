"""``stretto.scipy.integrate``: integrals of samples.

NumPy's function, also under SciPy's name.
"""

from stretto.numpy import trapezoid

__all__ = ["trapezoid"]
