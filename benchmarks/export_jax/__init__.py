"""Files of ``jax.export`` exchanged with JAX itself, in an environment of its own.

Run by ``make export-jax``. Read ``__main__`` first.
"""
