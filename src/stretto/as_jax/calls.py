"""Transformations with the parameters that JAX's have: ``jit``, ``pmap``, ``eval_shape``.

Next, read ``presented/__init__``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

import stretto
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto.as_jax import trees
from stretto.as_jax.types import is_key
from stretto.random.key_arrays import KeyArray

__all__ = [
    "checkpoint",
    "device_count",
    "described",
    "description",
    "device_get",
    "devices",
    "eval_shape",
    "jit",
    "local_device_count",
    "local_devices",
    "make_mesh",
    "named_call",
    "pmap",
    "pure_callback",
    "remat",
]

_UINT32 = np.dtype(np.uint32)


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    device: Any = None,
    backend: str | None = None,
    abstracted_axes: Any = None,
    **options: Any,
) -> Any:
    """``stretto.jit`` with JAX's parameters."""
    if abstracted_axes is not None:
        raise NotImplementedError("jax.jit: abstracted_axes is not in Stretto; use dynamic_axes")
    if backend is not None or device is not None:
        _check_backend(backend if device is None else device.platform, "jit")
    if fun is None:
        return functools.partial(jit, **options)
    if fun.__class__ is not FunctionType:
        return stretto.jit(fun, **options)
    jitted = fun.__dict__.get(_Jitted.NAME)
    if jitted is None or jitted.fun is not fun:  # that of what it wraps, copied by functools.wraps
        jitted = fun.__dict__[_Jitted.NAME] = _Jitted(fun)
    return jitted.by(options)


class _Jitted:
    """The compiled forms of a function, by the options of ``jit``.

    In JAX all ``jit(f)`` of one ``f`` share what was traced, and libraries make a new one for each
    call. The function keeps this object, so both are freed together. Copies of the function by
    pickle have an empty one.
    """

    NAME = "__stretto_jitted__"

    def __init__(self, fun: Any = None) -> None:
        self.fun = fun
        self._forms: dict[Any, Any] = {}

    def by(self, options: dict[str, Any]) -> Any:
        """The form with these options, which is new if they cannot be compared."""
        key = tuple(sorted(options.items()))
        try:
            known = self._forms.get(key)
        except TypeError:
            return stretto.jit(self.fun, **options)
        if known is None:
            known = self._forms[key] = stretto.jit(self.fun, **options)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return _Jitted, ()


def _check_backend(backend: str | None, caller: str) -> None:
    if backend is not None and backend != stretto.default_backend():
        raise NotImplementedError(
            f"jax.{caller}: a function is compiled for where its arguments are, here "
            f"{stretto.default_backend()!r}; got {backend!r}: use jax.device_put"
        )


def _backends(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a backend, which raises as JAX's where there is none."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except (ValueError, RuntimeError) as error:
            raise RuntimeError(f"Unknown backend: {error}") from error

    return call


devices = _backends(stretto.devices)
device_count = _backends(stretto.device_count)
local_devices = _backends(stretto.local_devices)
local_device_count = _backends(stretto.local_device_count)


def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Any = None,
    *,
    backend: str | None = None,
    **options: Any,
) -> Any:
    """``stretto.pmap`` with JAX's parameters."""
    _check_backend(backend, "pmap")
    options.pop("global_arg_shapes", None)
    if fun is None:
        return functools.partial(pmap, axis_name=axis_name, **options)
    return stretto.pmap(fun, axis_name, **options)


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    concrete: bool = False,
    **options: Any,
) -> Any:
    """``stretto.checkpoint`` with JAX's parameters."""
    if concrete:
        raise NotImplementedError("jax.checkpoint: use static_argnums in place of concrete=True")
    if fun is None:
        return functools.partial(checkpoint, **options)
    return stretto.checkpoint(fun, **options)


remat = checkpoint


def named_call(fun: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """``stretto.named_call``, also as a decorator with a name."""
    if fun is None:
        return functools.partial(named_call, name=name)
    return stretto.named_call(fun, name=name)


def make_mesh(
    axis_shapes: Any, axis_names: Any, axis_types: Any = None, *, devices: Any = None
) -> Any:
    """``stretto.make_mesh``; the types of axes are looked at nowhere."""
    del axis_types
    return stretto.make_mesh(axis_shapes, axis_names, devices=devices)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    vectorized: bool | None = None,
    **kwargs: Any,
) -> Any:
    """``stretto.pure_callback`` with JAX's parameters."""
    if vectorized is not None and vmap_method is None:
        vmap_method = "legacy_vectorized" if vectorized else "sequential"
    return stretto.pure_callback(
        callback,
        result_shape_dtypes,
        *args,
        sharding=sharding,
        vmap_method="expand_dims" if vmap_method == "legacy_vectorized" else vmap_method,
        **kwargs,
    )


def device_get(x: Any) -> Any:
    """The arrays of a tree in NumPy; typed keys stay what they are."""
    return trees.map_(lambda leaf: leaf if is_key(leaf) else stretto.device_get(leaf), x)


def described(leaf: Any) -> Any:
    """Keys of which only shape and dtype are known, where that is what a leaf says."""
    if isinstance(leaf, ShapeDtypeStruct) and hasattr(leaf.dtype, "extended_kind"):
        implementation = leaf.dtype.implementation
        words = ShapeDtypeStruct((*leaf.shape, implementation.size), _UINT32)
        return KeyArray(words, implementation)  # type: ignore[arg-type]
    return leaf


def description(leaf: Any) -> Any:
    """What is known of keys, of which only the words are described."""
    return ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_key(leaf) else leaf


def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results, those of typed keys among them.

    A result may be a ``ShapeDtypeStruct`` already.
    """
    args, kwargs = trees.map_(described, (args, kwargs))
    known: list[ShapeDtypeStruct | None] = []

    def note(leaf: Any) -> Any:
        is_known = isinstance(leaf, ShapeDtypeStruct)
        known.append(leaf if is_known else None)
        return 0 if is_known else leaf

    out = stretto.eval_shape(lambda *xs, **ys: trees.map_(note, fun(*xs, **ys)), *args, **kwargs)
    given = iter(known)

    def known_or_traced(leaf: Any) -> Any:
        struct = next(given)
        return description(leaf) if struct is None else struct

    return trees.map_(known_or_traced, out)
