"""``jax.experimental.ode``."""

from stretto.compat.jax.ode import odeint

__all__ = ["odeint"]
