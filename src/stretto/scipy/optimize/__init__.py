"""``stretto.scipy.optimize``: minima of functions.

Read ``minimising``, ``bfgs``, ``line_search``.
"""

from stretto.scipy.optimize.minimising import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
