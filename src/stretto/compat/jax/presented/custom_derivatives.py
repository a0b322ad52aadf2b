"""``jax.custom_derivatives``."""

from stretto._engine.api.autodiff.custom_gradient import closure_convert, custom_gradient
from stretto._engine.higher_order.linear_call import linear_call
from stretto._engine.higher_order.symbolic_zeros import (
    CustomVJPPrimal,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from stretto.compat.jax.custom_functions import custom_jvp, custom_vjp
from stretto.compat.jax.jaxprs.ad import SymbolicZero
from stretto.compat.jax.jaxprs.tables.named import primitive_of

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]

custom_jvp_call_p = primitive_of("custom_jvp_call")
custom_vjp_call_p = primitive_of("custom_vjp_call")
