"""``stretto.scipy.cluster``: clusters. Read ``vq``."""

from stretto.scipy.cluster import vq

__all__ = ["vq"]
