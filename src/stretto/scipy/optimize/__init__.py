"""``stretto.scipy.optimize``: minima of functions.

Read ``minimizing``, then ``descent``.
"""

from stretto._engine.core.guarded import guard_module
from stretto.scipy.optimize.minimizing import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]

guard_module(__name__)
