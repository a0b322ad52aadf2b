"""``jax.experimental.ode``."""

from stretto.as_jax.ode import odeint

__all__ = ["odeint"]
