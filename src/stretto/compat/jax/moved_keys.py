"""Functions of arrays that only move elements, for typed keys; and draws that take keys so."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from stretto import lax, random
from stretto import numpy as snp
from stretto._engine.core.config import config as ours
from stretto.compat.jax.avals import is_key
from stretto.compat.jax.naming import with_jax_draws
from stretto.compat.jax.settings import config
from stretto.random.key_arrays import KeyArray

__all__ = [
    "LAX_MOVING_KEYS",
    "MOVING_KEYS",
    "PRNGKey",
    "choice",
    "drawing_keys",
    "key",
    "key_among",
    "keys_in",
    "moving_keys",
    "of_keys",
    "permutation",
]


def keys_in(value: Any) -> Iterator[KeyArray]:
    """Return the keys that it is, or that nested lists and tuples have."""
    if is_key(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from keys_in(x)


def key_among(caller: str, args: Iterable[Any]) -> KeyArray | None:
    """Return the first key among arguments, all of one type; None without keys."""
    like = None
    for key in keys_in(tuple(args)):
        like = key if like is None else like
        if key.dtype != like.dtype:
            raise TypeError(f"{caller}: keys of types {like.dtype} and {key.dtype}")
    return like


def of_keys(fun: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with another in its place where an argument is a key."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = any(map(is_key, (*args, *kwargs.values())))
        return (other if found else fun)(*args, **kwargs)

    return call


def moving_keys(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function take keys as well: it moves numbers that stand for them.

    The number 0 is that of a key whose words are zero, as elements are that a function fills in.

    Args:
        fun: a function of arrays whose results have elements of its arguments, and zeros.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        like = key_among(fun.__name__, (*args, *kwargs.values()))
        if like is None:
            return fun(*args, **kwargs)
        width = like._words.shape[-1]
        rows = [snp.zeros((1, width), like._words.dtype)]
        count = 1

        def numbered(value: Any) -> Any:
            nonlocal count
            if is_key(value):
                rows.append(value._words.reshape(-1, width))
                first, count = count, count + value.size
                return snp.arange(first, count).reshape(value.shape)
            if isinstance(value, (list, tuple)):
                return type(value)([numbered(x) for x in value])
            return value

        numbers = fun(
            *[numbered(x) for x in args], **{name: numbered(x) for name, x in kwargs.items()}
        )
        words = snp.concatenate(rows)
        if isinstance(numbers, (list, tuple)):
            return type(numbers)([like._like(words[n]) for n in numbers])
        return like._like(words[numbers])

    return call


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if next(keys_in(choicelist), None) is not None and not is_key(default):
        raise ValueError("select: default must be a key, as the choices are; got a number")
    return _select_any(condlist, choicelist, default)


_select_any = moving_keys(snp.select)


_full_of_keys = moving_keys(
    lambda shape, fill_value, dtype=None, **options: snp.broadcast_to(fill_value, shape)
)


def _keys_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    if not is_key(a):
        raise TypeError("full_like: an array is not filled with a key; use full")
    shape = a.shape if shape is None else shape
    if is_key(fill_value):
        return _full_of_keys(shape, fill_value)
    words = a._words
    return a._like(snp.full((*shape, words.shape[-1]), fill_value, words.dtype))


def _fill_keys(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``zeros`` or ``empty`` take the dtype of keys as well."""

    @functools.wraps(fun)
    def call(shape: Any, dtype: Any = None, **options: Any) -> Any:
        if not hasattr(dtype, "extended_kind"):
            return fun(shape, dtype, **options)
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        implementation = dtype.implementation
        return KeyArray(snp.zeros((*sizes, implementation.size), snp.uint32), implementation)

    return call


def _keys_are_in(element: Any, test_elements: Any) -> Any:
    if not (is_key(element) and is_key(test_elements)):
        raise TypeError("isin: keys are among keys alone")
    return (element.reshape(*element.shape, 1) == test_elements.ravel()).any(-1)


def _broadcast_arrays(*args: Any) -> list[Any]:
    shape = snp.broadcast_shapes(*[x.shape if is_key(x) else snp.shape(x) for x in args])
    return [_full_of_keys(shape, x) if is_key(x) else snp.broadcast_to(x, shape) for x in args]


def drawing_keys(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``random.choice`` or ``random.permutation`` take keys as well.

    Args:
        draw: that of Stretto.
    """

    @functools.wraps(draw)
    def call(key: Any, *args: Any, **kwargs: Any) -> Any:
        def drawn(*args: Any, **kwargs: Any) -> Any:
            return draw(key, *args, **kwargs)

        return moving_keys(drawn)(*args, **kwargs)

    return call


_NAMES = (
    "append array_split atleast_1d atleast_2d atleast_3d block choose column_stack compress concat "
    "delete diagonal dsplit dstack extract flip fliplr flipud hsplit hstack insert "
    "matrix_transpose moveaxis permute_dims repeat resize roll rollaxis rot90 swapaxes "
    "take_along_axis tile tril triu unstack vsplit vstack"
)
MOVING_KEYS: dict[str, Callable[..., Any]] = {
    **{name: moving_keys(getattr(snp, name)) for name in _NAMES.split()},
    "broadcast_arrays": _broadcast_arrays,
    "empty": _fill_keys(snp.empty),
    "full": of_keys(snp.full, _full_of_keys),
    "full_like": of_keys(snp.full_like, _keys_like),
    "isin": of_keys(snp.isin, _keys_are_in),
    "select": _select,
    "zeros": _fill_keys(snp.zeros),
}
"""Functions by the name in ``jax.numpy``."""

LAX_MOVING_KEYS: dict[str, Callable[..., Any]] = {
    **{name: moving_keys(getattr(lax, name)) for name in ("collapse", "gather", "split", "tile")},
    "full": of_keys(lax.full, _full_of_keys),
    "full_like": of_keys(lax.full_like, _keys_like),
}
"""Functions by the name in ``jax.lax``."""


choice = drawing_keys(with_jax_draws(random.choice))
permutation = drawing_keys(random.permutation)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Call ``stretto.random.key``, to whose seed ``jax_random_seed_offset`` is added."""
    return random.key(_add_offset(seed), impl=impl, dtype=dtype)


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """Call ``stretto.random.PRNGKey``, likewise; a typed key under ``jax_enable_custom_prng``."""
    made = random.key if config.jax_enable_custom_prng else random.PRNGKey
    return made(_add_offset(seed), impl=impl)


def _add_offset(seed: Any) -> Any:
    """Return the seed and the offset, in integers of as many bits as JAX has then."""
    offset = config.jax_random_seed_offset
    if not offset:
        return seed
    if isinstance(seed, (int, np.integer)) and -(1 << 63) <= int(seed) < 1 << 64:
        bits = 64 if ours.enable_x64 else 32
        wrapped = (int(seed) + offset) % (1 << bits)
        return wrapped - (1 << bits) if wrapped >> bits - 1 else wrapped
    return snp.asarray(seed) + offset
