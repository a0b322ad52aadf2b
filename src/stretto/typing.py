"""``stretto.typing``: names for annotations.

``ArrayLike`` is what functions take as an array, ``DTypeLike`` what they take as a dtype.

>>> from stretto.typing import ArrayLike
>>> import stretto.numpy as snp
>>> def double(x: ArrayLike):
...     return snp.multiply(x, 2)
>>> double(3)
Array(6, dtype=int32, weak_type=True)
"""

from stretto._engine.core.typing import (
    ArrayLike,
    Axes,
    Axis,
    DType,
    DTypeLike,
    Key,
    Shape,
    ShapeLike,
    SupportsDType,
)
from stretto._engine.xla.array import Array

__all__ = [
    "Array",
    "ArrayLike",
    "Axes",
    "Axis",
    "DType",
    "DTypeLike",
    "Key",
    "Shape",
    "ShapeLike",
    "SupportsDType",
]
