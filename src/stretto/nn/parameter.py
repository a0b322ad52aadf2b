"""``Parameter``: the mark of an array that is trained.

``Module`` keeps the array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert

__all__ = ["Parameter"]


if TYPE_CHECKING:
    _Marked = Array  # an attribute to which a parameter is assigned holds the array
else:
    _Marked = object


class Parameter(_Marked):
    """Mark an array, assigned to an attribute of a module, as one that is trained.

    The attribute then holds the array itself.

    Args:
        value: the array, of a floating or complex dtype; a Python number becomes an array.

    Raises:
        TypeError: ``value`` is not an array, or holds integers or booleans, which have no gradient.

    As PyTorch's ``nn.Parameter``.

    >>> import stretto as st
    >>> from stretto import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(st.numpy.ones(3))
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> list(Scale().state_dict())
    ['factor']
    """

    __slots__ = ("value",)

    if TYPE_CHECKING:

        def __new__(cls, value: ArrayLike | Parameter) -> Array:
            """The array."""
            ...

    def __init__(self, value: ArrayLike | Parameter) -> None:
        self.value = value.value if isinstance(value, Parameter) else as_fixed(value, "Parameter")
        if not is_inexact(self.value.dtype):
            raise TypeError(
                f"Parameter: {self.value.type} has no gradient; convert it to a float, or keep it "
                f"with register_buffer"
            )


def as_fixed(value: ArrayLike, caller: str, name: str = "value") -> Array:
    """The value as an array of a strong dtype, even if it was a Python number."""
    array = as_value(value, caller, name)
    return convert(array, array.dtype)
