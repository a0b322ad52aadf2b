"""Functions whose derivatives the user gives, and what their rules receive.

The names of ``jax.custom_derivatives``, and ``Linear``, which stands for arguments in transpose
rules of ``stretto.primitive``.
"""

from stretto._engine.api.autodiff.custom_gradient import closure_convert, custom_gradient
from stretto._engine.core.guarded import guard_module
from stretto._engine.core.interpreter import Linear
from stretto._engine.higher_order.custom_jvp import custom_jvp
from stretto._engine.higher_order.custom_vjp import custom_vjp
from stretto._engine.higher_order.linear_call import linear_call
from stretto._engine.higher_order.symbolic_zeros import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

__all__ = [
    "CustomVJPPrimal",
    "Linear",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]

guard_module(__name__)
