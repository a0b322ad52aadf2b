"""``jax.example_libraries``."""
