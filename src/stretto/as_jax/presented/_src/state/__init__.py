"""``jax._src.state``."""
