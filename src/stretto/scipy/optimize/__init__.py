"""``stretto.scipy.optimize``: minima of functions.

Read ``minimizing``, ``descent``, ``line_search``, ``bfgs``, ``lbfgs``.
"""

from stretto.scipy.optimize.minimizing import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
