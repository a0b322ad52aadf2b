"""JAX's own tests of ``jax.export``, on Stretto."""
