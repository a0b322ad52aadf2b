"""``stretto.scipy.spatial``: geometry. Read ``transform``."""

from stretto.scipy.spatial import transform

__all__ = ["transform"]
