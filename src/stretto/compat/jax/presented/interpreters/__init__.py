"""``jax.interpreters``."""
