"""``jax._src``: what clients reach for inside of JAX. Others of its modules are the public ones."""
