"""``jax.test_util``."""

from stretto.compat.jax.gradients import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]
