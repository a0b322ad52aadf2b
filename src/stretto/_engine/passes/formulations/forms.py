"""The forms in which members are computed, and the plans that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any, NamedTuple


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
    """What the setting ``plan`` asks for."""

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
