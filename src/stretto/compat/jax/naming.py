"""Names of modules under JAX's: those of Stretto's modules, draws as JAX's, and refused ones.

Stretto draws narrow floats in float32 and rounds them last, and has a formula of its own for the
tails of the truncated normal distribution. JAX does neither, and libraries written for it may hold
its numbers to the last bit.

>>> from stretto import random
>>> from stretto.compat.jax.naming import names_of, with_jax_draws
>>> get, names = names_of("stretto.numpy")
>>> get("pi") > 3
True
>>> key = random.PRNGKey(0x23456789)
>>> random.normal(key, (2,), "bfloat16"), with_jax_draws(random.normal)(key, (2,), "bfloat16")
(Array([0.115723, 0.9375], dtype=bfloat16), Array([-0.171875, -1.83594], dtype=bfloat16))
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

from stretto.random.draw_arguments import draws_as_jax

__all__ = ["REFUSED", "RefusedName", "drawing_names_of", "names_of", "with_jax_draws"]


def names_of(home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module that has this module's names.

    Args:
        home: the module.
    """

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(home), name)

    return get, lambda: sorted(dir(importlib.import_module(home)))


_WITHOUT_DRAWS = ("stretto.random.keys", "stretto.random.streams")


@functools.cache
def with_jax_draws(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function draw as JAX does, and the function that it returns, if it returns one.

    Args:
        fun: a draw, or what makes an initializer.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with draws_as_jax():
            out = fun(*args, **kwargs)
        return with_jax_draws(out) if isinstance(out, FunctionType) else out

    return call


def drawing_names_of(home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` for this module's names, as draws.

    Args:
        home: the module.
    """
    get, names = names_of(home)

    def draws(name: str) -> Any:
        value = get(name)
        if isinstance(value, FunctionType) and value.__module__ not in _WITHOUT_DRAWS:
            return with_jax_draws(value)
        return value

    return draws, names


_KERNELS = (
    "kernels written for one kind of device are not part of Stretto: write the function in "
    "jax.numpy"
)
_SAVING = "arrays are saved with stretto.save, or by a library of the user's"
_TENSORFLOW = "there is no way to TensorFlow: export with jax.jit(f).lower(...)"

_EXPORT = "programs are not written to files: jax.jit(f).lower(...).as_text() has their text"

REFUSED = {
    "experimental.array_serialization": _SAVING,
    "experimental.array_serialization.serialization": _SAVING,
    "experimental.array_serialization.tensorstore_impl": _SAVING,
    "experimental.jax2tf": _TENSORFLOW,
    "export": _EXPORT,
    "experimental.pallas": _KERNELS,
    "experimental.pallas.ops": _KERNELS,
    "experimental.pallas.ops.gpu": _KERNELS,
    "experimental.pallas.ops.tpu": _KERNELS,
    "experimental.pallas.gpu": _KERNELS,
    "experimental.pallas.mosaic_gpu": _KERNELS,
    "experimental.pallas.tpu": _KERNELS,
    "experimental.pallas.triton": _KERNELS,
}
"""The reasons, by the path below ``jax``, why it is refused, and what to do instead."""


class RefusedName:
    """Stands for something of JAX's that Stretto does not have; says so when it is called.

    >>> RefusedName("jax.experimental.pallas", "write it in jax.numpy").pallas_call(1)
    Traceback (most recent call last):
    NotImplementedError: jax.experimental.pallas.pallas_call is not in Stretto: write it in jax...
    """

    def __init__(self, name: str, why: str) -> None:
        self.__name__ = name
        self._why = why

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return RefusedName(f"{self.__name__}.{name}", self._why)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{self.__name__} is not in Stretto: {self._why}")

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not in Stretto>"
