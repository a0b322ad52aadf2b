"""Transformations with the parameters that JAX's have: ``jit``, ``pmap``, ``eval_shape``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.sharding.pmap import pmap as pmap_over_devices
from stretto._engine.core.scope import named_call as named
from stretto._engine.core.shardings import SingleDeviceSharding
from stretto._engine.xla import device as platforms
from stretto._engine.xla.device import default_device
from stretto._engine.xla.sharded import sharding_if_any
from stretto.compat.jax import trees
from stretto.compat.jax.host_devices import follow_flags
from stretto.compat.jax.shared_jit import shared_jit
from stretto.compat.jax.types import Tracer, is_key
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
    "remat",
    "with_sharding_constraint",
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
    """``stretto.jit`` with JAX's parameters.

    Results of a function with ``device=`` are there; its arguments may be there, or put nowhere.
    """
    if abstracted_axes is not None:
        raise NotImplementedError("jax.jit: abstracted_axes is not in Stretto; use dynamic_axes")
    if device is not None:
        if backend is not None:
            raise ValueError(
                f"jax.jit: can't specify both a device and a backend, got device={device!r} and "
                f"backend={backend!r}"
            )
        if not isinstance(device, platforms.Device):
            raise TypeError(f"jax.jit: device must be one of jax.devices(); got {device!r}")
        given = [
            name for name in ("in_shardings", "out_shardings") if options.get(name) is not None
        ]
        if given:
            raise ValueError(f"jax.jit: device and {given[0]} cannot both be given")
        options["out_shardings"] = SingleDeviceSharding(device)
    _check_backend(backend, "jit")
    if fun is None:
        return functools.partial(jit, **options)
    return shared_jit(fun, options)


def _check_backend(backend: str | None, caller: str) -> None:
    if backend is not None and backend != platforms.default_backend():
        raise NotImplementedError(
            f"jax.{caller}: a function is compiled for where its arguments are, here "
            f"{platforms.default_backend()!r}; got {backend!r}: use jax.device_put"
        )


def _backends(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a backend, which raises as JAX's where there is none."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        follow_flags()
        try:
            return fun(*args, **kwargs)
        except (ValueError, RuntimeError) as error:
            raise RuntimeError(f"Unknown backend: {error}") from error

    return call


devices = _backends(stretto.devices)
device_count = _backends(platforms.device_count)
local_devices = _backends(platforms.local_devices)
local_device_count = _backends(platforms.local_device_count)


def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Any = None,
    *,
    backend: str | None = None,
    **options: Any,
) -> Any:
    """``pmap`` with JAX's parameters; results on the default device alone are plain arrays.

    JAX has one class of arrays, and clients compare classes.
    """
    _check_backend(backend, "pmap")
    follow_flags()
    options.pop("global_arg_shapes", None)
    if fun is None:
        return functools.partial(pmap, axis_name=axis_name, **options)
    over_devices = pmap_over_devices(fun, axis_name, **options)

    @functools.wraps(over_devices)  # which has also its ``lower``
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return trees.map_(_plain, over_devices(*args, **kwargs))

    return mapped


def _plain(leaf: Any) -> Any:
    """An array that is on the default device alone, without its sharding."""
    sharding = sharding_if_any(leaf)
    here = default_device()
    if sharding is None or sharding.device_set != {here}:
        return leaf
    return stretto.device_put(leaf, here)


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
    """``named_call``, also as a decorator with a name."""
    if fun is None:
        return functools.partial(named_call, name=name)
    return named(fun, name=name)


def make_mesh(
    axis_shapes: Any, axis_names: Any, axis_types: Any = None, *, devices: Any = None
) -> Any:
    """``stretto.make_mesh``; the types of axes are looked at nowhere."""
    del axis_types
    follow_flags()
    return stretto.make_mesh(axis_shapes, axis_names, devices=devices)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``stretto.lax.with_sharding_constraint``, for which one device is a place as well."""
    if isinstance(shardings, (platforms.Device, SingleDeviceSharding)):
        return stretto.device_put(x, shardings)
    return stretto.lax.with_sharding_constraint(x, shardings)


def device_get(x: Any) -> Any:
    """The arrays of a tree in NumPy; typed keys and traced values stay what they are."""
    stays = lambda leaf: is_key(leaf) or isinstance(leaf, Tracer)
    return trees.map_(lambda leaf: leaf if stays(leaf) else stretto.device_get(leaf), x)


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
