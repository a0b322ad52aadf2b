"""``stretto.scipy.spatial``: geometry. Read ``transform``."""

from stretto._engine.core.lazy import exports
from stretto.scipy.spatial import transform

__all__ = ["transform"]

exports(__name__)
