"""``jax.errors``."""

from stretto.compat.jax.naming import names_of

__all__ = ["JAXIndexError", "JAXTypeError", "JaxRuntimeError", "KeyReuseError"]

JaxRuntimeError = JAXRuntimeError = RuntimeError
"""Errors of the runtime, and of Python functions that programs call, are of it."""

__getattr__, __dir__ = names_of("stretto.errors")


class JAXTypeError(TypeError):
    """The base of JAX's errors about types."""


class JAXIndexError(IndexError):
    """The base of JAX's errors about indices."""


class KeyReuseError(RuntimeError):
    """A key was used twice; Stretto does not look for that."""
