"""``jax._src.interpreters``."""
