"""``jax._src.literals``: Python's numbers and NumPy's arrays as arguments; no value is of these."""

__all__ = ["LiteralArray", "TypedNdArray"]


class LiteralArray:
    """No value is one."""


class TypedNdArray:
    """No value is one."""
