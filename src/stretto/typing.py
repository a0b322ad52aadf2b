"""``stretto.typing``: classes for annotations and ``isinstance``.

``ArrayLike`` is what functions take as an array, ``DTypeLike`` what they take as a dtype.
``Jitted`` is what ``jit`` makes; ``TracedCall``, ``Lowered`` and ``Compiled`` are the stages of a
call of it. The rules of ``custom_jvp``, ``custom_vjp`` and ``primitive`` receive ``SymbolicZero``,
``CustomVJPPrimal`` and ``Linear``.

>>> from stretto.typing import ArrayLike
>>> import stretto.numpy as snp
>>> def double(x: ArrayLike):
...     return snp.multiply(x, 2)
>>> double(3)
Array(6, dtype=int32, weak_type=True)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.interpreter import Linear as Linear
from stretto._engine.core.lazy import exports
from stretto._engine.core.typing import (
    ArrayLike as ArrayLike, Axes as Axes, Axis as Axis, DType as DType, DTypeLike as DTypeLike,
    Key as Key, Shape as Shape, ShapeLike as ShapeLike, SupportsDType as SupportsDType,
)  # fmt: skip
from stretto._engine.xla.array import Array as Array

if TYPE_CHECKING:
    from stretto._engine.api.jit.jit import Jitted as Jitted
    from stretto._engine.api.jit.stages import (
        ArgInfo as ArgInfo, Compiled as Compiled, Lowered as Lowered, TracedCall as TracedCall,
    )  # fmt: skip
    from stretto._engine.higher_order.refs import Ref as Ref
    from stretto._engine.higher_order.custom_function import (
        CustomVJPPrimal as CustomVJPPrimal,
        SymbolicZero as SymbolicZero,
    )
    from stretto._engine.xla.device import Device as Device

exports(
    __name__,
    """
    stretto._engine.api.jit.jit: Jitted
    stretto._engine.api.jit.stages: ArgInfo Compiled Lowered TracedCall
    stretto._engine.higher_order.refs: Ref
    stretto._engine.higher_order.custom_function: CustomVJPPrimal SymbolicZero
    stretto._engine.xla.device: Device
    """,
)
