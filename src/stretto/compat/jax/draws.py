"""Random numbers as JAX draws them: in their own dtype, and by its formulas alone.

Stretto draws narrow floats in float32 and rounds them last, and has a formula of its own for the
tails of the truncated normal distribution. JAX does neither, and libraries written for it may hold
its numbers to the last bit.

>>> from stretto import random
>>> from stretto.compat.jax.draws import with_jax_draws
>>> key = random.PRNGKey(0x23456789)
>>> random.normal(key, (2,), "bfloat16"), with_jax_draws(random.normal)(key, (2,), "bfloat16")
(Array([0.115723, 0.9375], dtype=bfloat16), Array([-0.171875, -1.83594], dtype=bfloat16))
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from stretto.compat.jax.naming import names_of
from stretto.random.draw_arguments import draws_as_jax

__all__ = ["with_jax_draws", "drawing_names_of"]

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
    """The ``__getattr__`` and ``__dir__`` of a module that has this module's names, for draws.

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
