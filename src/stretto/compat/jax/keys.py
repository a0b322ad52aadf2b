"""Functions of arrays, and draws, that take typed keys as well, as JAX's do.

Those that only move elements move numbers that stand for the keys; the others work on their words.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from stretto import lax, random
from stretto import numpy as snp
from stretto._engine.core.config import config as ours
from stretto._engine.core.types import float0
from stretto.compat.jax.avals import is_key
from stretto.compat.jax.modules import with_jax_draws
from stretto.compat.jax.settings import config
from stretto.lax import top_k as largest
from stretto.random.key_arrays import KeyArray


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


def _words(value: Any) -> Any:
    if is_key(value):
        return value._words
    if isinstance(value, (list, tuple)):
        return type(value)([_words(x) for x in value])
    return value


def _own_axes(axis: Any, ndim: int) -> Any:
    """Count axes of keys from the front: the words have one more at the end."""
    if isinstance(axis, (list, tuple)):
        return tuple([_own_axes(a, ndim) for a in axis])
    return axis + ndim if isinstance(axis, int) and axis < 0 else axis


def with_keys(fun: Callable[..., Any], more_axes: int = 0) -> Callable[..., Any]:
    """Return a function of arrays that moves elements, of keys too.

    Args:
        fun: the function; axes are its arguments ``axis``, ``axis1``, ``source`` and so on.
        more_axes: how many axes the result has more than the keys, for axes counted from behind.
    """
    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        like = key_among(fun.__name__, (*args, *kwargs.values()))
        if like is None:
            return fun(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        ndim = like.ndim + more_axes
        for name, value in bound.arguments.items():
            if name in _AXES:
                bound.arguments[name] = _own_axes(value, ndim)
            elif name in _OF_WORDS:
                bound.arguments[name] = _OF_WORDS[name](value, like)
            else:
                bound.arguments[name] = _words(value)
        result = fun(*bound.args, **bound.kwargs)
        if isinstance(result, (list, tuple)):
            return [like._like(words) for words in result]
        return like._like(result)

    return call


def _sizes(sizes: Any, like: KeyArray) -> tuple[int, ...]:
    """Return a shape of keys, with the axis of their words."""
    own = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return (*own, like._implementation.size)


def _choice(choice: Any, like: KeyArray) -> Any:
    """Spread which keys are chosen over all of their words; a scalar is of all keys."""
    shape = snp.shape(choice)
    return snp.broadcast_to(snp.expand_dims(choice, -1), _sizes(shape, like)) if shape else choice


def _order(order: Sequence[int] | None, like: KeyArray) -> tuple[int, ...]:
    return (*(reversed(range(like.ndim)) if order is None else order), like.ndim)


_AXES = ("axis", "axis1", "axis2", "source", "destination", "dimension", "dimensions")
_SHAPES = ("shape", "newshape", "new_sizes", "slice_sizes", "limit_indices")
_OF_WORDS: dict[str, Callable[[Any, KeyArray], Any]] = {
    **dict.fromkeys(_SHAPES, _sizes),
    **dict.fromkeys(("pred", "which"), _choice),
    "permutation": _order,
    "start_indices": lambda starts, _: (*starts, 0),
    "strides": lambda steps, _: None if steps is None else (*steps, 1),
}
"""Functions from arguments by these names for keys to those for the words."""


def _where(condition: Any, x: Any = None, y: Any = None, /, **options: Any) -> Any:
    if not (is_key(x) or is_key(y)):
        return snp.where(condition, *([] if x is None and y is None else [x, y]), **options)
    if not (is_key(x) and is_key(y) and x.dtype == y.dtype):
        raise TypeError("where: keys can be chosen only from keys of the same type")
    return x._like(snp.where(snp.expand_dims(condition, -1), x._words, y._words))


def _like(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``zeros_like`` or its kind take keys, whose words are all zero."""

    @functools.wraps(fun)
    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = getattr(a, "dtype", None)
        if is_key(a) and not args and kwargs.get("dtype") is None:
            kwargs.pop("dtype", None)
            return a._like(fun(a._words, **kwargs))
        if dtype is not None and dtype == float0:
            return snp.zeros(a.shape, bool)
        return fun(a, *args, **kwargs)

    return call


def _transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    return a.transpose(*(axes or ())) if is_key(a) else snp.transpose(a, axes)


def _asarray(fun: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fun)
    def call(object: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if is_key(object):
            return object
        if isinstance(object, (list, tuple)) and any(map(is_key, object)):
            return TAKING_KEYS["stack"](object)
        return fun(object, dtype, *args, **kwargs)

    return call


def _measure(fun: Callable[..., Any], attribute: str) -> Callable[..., Any]:
    @functools.wraps(fun)
    def call(a: Any, *args: Any) -> Any:
        return getattr(a, attribute) if is_key(a) and not args else fun(a, *args)

    return call


def _expand_dims(a: Any, axis: Any) -> Any:
    if not is_key(a):
        return snp.expand_dims(a, axis)
    count = len(axis) if isinstance(axis, (list, tuple)) else 1
    return a._like(snp.expand_dims(a._words, _own_axes(axis, a.ndim + count)))


def _ravel(a: Any, *args: Any, **kwargs: Any) -> Any:
    return a.ravel() if is_key(a) else snp.ravel(a, *args, **kwargs)


_reshape_keys = with_keys(snp.reshape)


def _reshape(a: Any, shape: Any, order: Any = "C", **options: Any) -> Any:
    """Call ``reshape``, which leaves NumPy's arrays to NumPy: in traces, too, they stay known."""
    if isinstance(a, np.ndarray) and not options:
        return a.reshape(shape, order=order)
    return _reshape_keys(a, shape, order, **options)


def _vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """Vectorize a function of arguments that may be keys, of which each is a scalar."""
    plain = snp.vectorize(pyfunc, excluded=excluded, signature=signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        keys = {i: x for i, x in enumerate(args) if is_key(x) and i not in excluded}
        if not keys:
            return plain(*args, **kwargs)
        inside = [i for i in range(len(args)) if i not in excluded]
        left, right = (signature or ",".join(["()"] * len(inside)) + "->()").split("->")
        cores = re.findall(r"\([^)]*\)", left)
        for place, i in enumerate(inside):
            if i in keys and place < len(cores):
                cores[place] = f"({cores[place][1:-1]},{_SIZE})".replace("(,", "(")

        def of_words(*words: Any, **named: Any) -> Any:
            return pyfunc(
                *[keys[i]._like(w) if i in keys else w for i, w in enumerate(words)], **named
            )

        sides = f"{','.join(cores)}->{right}"
        whole = snp.vectorize(of_words, excluded=excluded, signature=sides)
        return whole(*[_words(x) if i in keys else x for i, x in enumerate(args)], **kwargs)

    return vectorized


_SIZE = "words_of_a_key"


def _squeeze(a: Any, axis: Any = None) -> Any:
    return a.squeeze(axis) if is_key(a) else snp.squeeze(a, axis)


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if is_key(a1) and is_key(a2):
        return a1.dtype == a2.dtype and snp.array_equal(a1._words, a2._words)
    return snp.array_equal(a1, a2, equal_nan)


def _astype(x: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
    if is_key(x) and x.dtype == dtype:
        return x
    return snp.astype(x, dtype, *args, **kwargs)


def _isclose(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    return a == b if is_key(a) and is_key(b) else snp.isclose(a, b, *args, **kwargs)


def _compare_keys(fun: Callable[..., Any], compare: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``equal`` or ``not_equal`` take keys, equal where all of their words are."""

    @functools.wraps(fun)
    def call(x: Any, y: Any, /) -> Any:
        return compare(x, y) if is_key(x) and is_key(y) else fun(x, y)

    return call


def _allclose(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    if is_key(a) and is_key(b):
        return (a == b).all()
    return snp.allclose(a, b, *args, **kwargs)


def _no_number(fun: Callable[..., Any], answer: bool) -> Callable[..., Any]:
    """Make ``isnan`` or its kind take keys, which are neither NaN nor infinite."""

    @functools.wraps(fun)
    def call(x: Any, /) -> Any:
        return snp.full(x.shape, answer) if is_key(x) else fun(x)

    return call


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    **options: Any,
) -> Any:
    """Call ``take``, which gives NaN out of bounds, or what stands for it, without a mode."""
    if is_key(a):
        return a.take(indices, axis, **options, **({} if mode is None else {"mode": mode}))
    return snp.take(a, indices, axis, out, mode or "fill", **options)


def _result_type(*args: Any) -> Any:
    if args and all(is_key(x) or hasattr(x, "extended_kind") for x in args):
        found = {getattr(x, "dtype", x) for x in args}
        if len(found) == 1:
            return found.pop()
    return snp.result_type(*args)


def _broadcast_in_dim(
    operand: KeyArray, shape: Sequence[int], broadcast_dimensions: Sequence[int], **options: Any
) -> Any:
    axes = (*broadcast_dimensions, len(shape))
    words = lax.broadcast_in_dim(operand._words, _sizes(shape, operand), axes, **options)
    return operand._like(words)


def _lax_expand_dims(array: KeyArray, dimensions: Any) -> Any:
    return _expand_dims(array, dimensions)


_MOVING = (
    "broadcast concatenate dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim "
    "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim index_in_dim "
    "reshape rev select select_n slice slice_in_dim transpose"
)
LAX_TAKING_KEYS: dict[str, Callable[..., Any]] = {
    **LAX_MOVING_KEYS,
    **{name: with_keys(getattr(lax, name)) for name in _MOVING.split()},
    "broadcast_in_dim": of_keys(lax.broadcast_in_dim, _broadcast_in_dim),
    "convert_element_type": of_keys(lax.convert_element_type, _astype),
    "eq": _compare_keys(lax.eq, operator.eq),
    "expand_dims": of_keys(lax.expand_dims, _lax_expand_dims),
    "ne": _compare_keys(lax.ne, operator.ne),
    "squeeze": of_keys(lax.squeeze, lambda array, dimensions=None: array.squeeze(dimensions)),
}
"""Functions by the name in ``jax.lax``."""

TAKING_KEYS: dict[str, Callable[..., Any]] = {
    **MOVING_KEYS,
    "allclose": _allclose,
    "array": _asarray(snp.array),
    "array_equal": _array_equal,
    "asarray": _asarray(snp.asarray),
    "astype": _astype,
    "broadcast_to": with_keys(snp.broadcast_to),
    "concatenate": with_keys(snp.concatenate),
    "copy": with_keys(snp.copy),
    "equal": _compare_keys(snp.equal, operator.eq),
    "empty_like": _like(snp.empty_like),
    "expand_dims": _expand_dims,
    "isclose": _isclose,
    "isfinite": _no_number(snp.isfinite, True),
    "isinf": _no_number(snp.isinf, False),
    "isnan": _no_number(snp.isnan, False),
    "ndim": _measure(snp.ndim, "ndim"),
    "not_equal": _compare_keys(snp.not_equal, operator.ne),
    "ones_like": _like(snp.ones_like),
    "ravel": _ravel,
    "reshape": _reshape,
    "result_type": _result_type,
    "shape": _measure(snp.shape, "shape"),
    "size": _measure(snp.size, "size"),
    "split": with_keys(snp.split),
    "squeeze": _squeeze,
    "stack": with_keys(snp.stack, more_axes=1),
    "take": take,
    "transpose": _transpose,
    "vectorize": _vectorize,
    "where": _where,
    "zeros_like": _like(snp.zeros_like),
}
"""Functions by the name in ``jax.numpy``."""


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """Return the ``k`` largest elements along an axis, and their indices, as a list."""
    return list(largest(operand, k, axis=axis))
