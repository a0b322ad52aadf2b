"""``stretto.scipy.optimize``: minima of functions.

Read ``minimizing``, then ``descent``.
"""

from stretto._engine.core.lazy import exports
from stretto.scipy.optimize.minimizing import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]

exports(__name__)
