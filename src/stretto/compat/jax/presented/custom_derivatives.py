"""``jax.custom_derivatives``."""

from stretto.compat.jax.custom_functions import custom_jvp, custom_vjp
from stretto.compat.jax.jaxprs.ad import SymbolicZero
from stretto.compat.jax.jaxprs.tables.named import primitive_of
from stretto.compat.jax.naming import names_of

__all__ = ["SymbolicZero", "custom_jvp", "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p"]

custom_jvp_call_p = primitive_of("custom_jvp_call")
custom_vjp_call_p = primitive_of("custom_vjp_call")

__getattr__, __dir__ = names_of("stretto.custom_derivatives")
