"""``stretto.scipy.sparse``: linear systems whose matrix is known only by its products.

Read ``linalg``.
"""

from stretto.scipy.sparse import linalg

__all__ = ["linalg"]
