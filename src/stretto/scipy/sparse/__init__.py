"""``stretto.scipy.sparse``: linear systems whose matrix is known by its products alone.

Read ``linalg``.
"""

from stretto.scipy.sparse import linalg

__all__ = ["linalg"]
