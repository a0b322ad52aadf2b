"""``jax._src.literals``: Python's numbers and NumPy's arrays as arguments; no value is of these."""

__all__ = ["LiteralArray", "TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray"]


class LiteralArray:
    """No value is one."""


class TypedNdArray:
    """No value is one."""


class TypedInt(int):
    """No value is one."""


class TypedFloat(float):
    """No value is one."""


class TypedComplex(complex):
    """No value is one."""
