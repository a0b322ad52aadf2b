"""``stretto.scipy.optimize``: minima of functions.

Read ``minimising``, ``descent``, ``line_search``, ``bfgs``, ``lbfgs``.
"""

from stretto.scipy.optimize.minimising import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
