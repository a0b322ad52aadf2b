"""The forms of operations, plans that ask for them, and the forms of what they are applied to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from typing import Any, NamedTuple

from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import expand_dims, move_axis, move_to_front, reshape
from stretto._engine.ops.shape import part_of


class Form(Enum):
    """A formulation of a product or convolution of all members, by its name in reports."""

    BATCHED_PRODUCT = "one batched product"
    WIDE_PRODUCT = "one wide product"
    WIDE_PRODUCT_MEMBERS_FIRST = "one wide product, members first"
    CHUNKS = "chunks of members"
    GROUPED_CONVOLUTION = "one convolution with groups"
    WIDE_CONVOLUTION = "one wide convolution"
    PRODUCTS_OF_WINDOWS = "matrix products of windows laid out once"
    WRITTEN_OUT = "members written out"
    IN_TURN = "members in turn"


class Plan(StrEnum):
    """A value of the setting ``plan``."""

    AUTO = "auto"
    MEASURE = "measure"
    AT_ONCE = "at once"
    BATCHED = "batched"
    WIDE = "wide"
    WRITTEN_OUT = "written out"
    IN_TURN = "in turn"

    def asks_for(self, form: Form) -> bool:
        """Say whether an operation is to have this form; where none is asked for, the fastest."""
        return form in _ASKED.get(self, ())


_ASKED = {
    Plan.BATCHED: (Form.BATCHED_PRODUCT, Form.GROUPED_CONVOLUTION, Form.WIDE_CONVOLUTION),
    Plan.WIDE: (Form.WIDE_PRODUCT, Form.WIDE_CONVOLUTION),
    Plan.WRITTEN_OUT: (Form.WRITTEN_OUT,),
}


class Choice(NamedTuple):
    """A form that an operation may have, its estimated time, and a function that runs it."""

    form: Form
    microseconds: float
    run: Callable[[], Any]


# The values of all members


class Shared:
    """One value for all members."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def type(self) -> ArrayType:
        """The type of one member's."""
        return self.value.type

    def member(self, i: int) -> Any:
        """Return the value that member ``i`` sees."""
        return self.value

    to_cut = to_stack = 0


class Whole:
    """The values of all members in one array, along an axis."""

    __slots__ = ("_parts", "axis", "value")

    def __init__(self, value: Any, axis: int) -> None:
        self.value, self.axis = value, axis
        self._parts: list[Any] | None = None

    @property
    def type(self) -> ArrayType:
        """The type of one member's."""
        whole = self.value.type
        return whole.with_shape(whole.shape[: self.axis] + whole.shape[self.axis + 1 :])

    @property
    def to_cut(self) -> int:
        """The bytes that cutting it into parts would copy."""
        return 0 if self._parts is not None else bytes_of(self.value.type)

    to_stack = 0

    def front(self) -> Any:
        """Return the array with the members along axis 0."""
        if self.axis:
            self.value, self.axis = move_to_front(self.value, self.axis), 0
        return self.value

    def at(self, axis: int) -> Any:
        """Return the array with the members along this axis."""
        return move_axis(self.value, self.axis, axis)

    def member(self, i: int) -> Any:
        """Return the value of member ``i``."""
        if self._parts is None:
            whole, axis = self.value.shape, self.axis
            shape = (*whole[:axis], *whole[axis + 1 :])
            ones = (1,) * len(whole)

            def part(k: int) -> Any:
                starts = tuple([k if a == axis else 0 for a in range(len(whole))])
                limits = (*whole[:axis], k + 1, *whole[axis + 1 :])
                return reshape(part_of(self.value, starts, limits, ones, hidden=True), shape)

            self._parts = [part(k) for k in range(whole[axis])]
        return self._parts[i]


class Parts:
    """The value of each member separately."""

    __slots__ = ("_whole", "values")

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self._whole: Any = None

    axis = to_cut = 0

    @property
    def type(self) -> ArrayType:
        """The type of one member's."""
        return self.values[0].type

    @property
    def to_stack(self) -> int:
        """The bytes that stacking them would copy."""
        if self._whole is not None:
            return 0
        return len(self.values) * bytes_of(self.type)

    @property
    def value(self) -> Any:
        """The array of all members, along axis 0."""
        return self.front()

    def front(self) -> Any:
        """Return the array of all members, along axis 0."""
        if self._whole is None:
            self._whole = concatenate([expand_dims(x, 0) for x in self.values], 0)
        return self._whole

    def at(self, axis: int) -> Any:
        """Return the array of all members, along this axis."""
        return move_axis(self.front(), 0, axis)

    def member(self, i: int) -> Any:
        """Return the value of member ``i``."""
        return self.values[i]
