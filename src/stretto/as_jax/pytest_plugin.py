"""A plugin for pytest, ``-p stretto.as_jax.pytest_plugin``: the tests get Stretto as ``jax``.

It is installed when pytest starts, before any ``conftest.py`` is read, and not by importing this.
"""

from __future__ import annotations

from stretto.compat.jax.modules import install

__all__ = ["pytest_load_initial_conftests"]


def pytest_load_initial_conftests() -> None:
    """Have ``import jax`` give Stretto: pytest calls this for plugins named by ``-p``."""
    install()
