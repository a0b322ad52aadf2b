"""A plugin for pytest, ``-p stretto.as_jax.pytest_plugin``: the tests get Stretto as ``jax``."""

from stretto.as_jax.finder import install

__all__: list[str] = []

install()
