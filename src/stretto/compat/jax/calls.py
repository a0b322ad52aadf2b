"""``jit``, ``grad``, ``pmap``, ``eval_shape`` and callbacks, with JAX's parameters and errors."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

import stretto
from stretto import debug, lax
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.sharding.shard_map import pmap as pmap_over_devices
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import Value, state
from stretto._engine.core.position import named_call as named
from stretto._engine.core.shardings import SingleDeviceSharding
from stretto._engine.core.types import float0
from stretto._engine.xla import device as platforms
from stretto._engine.xla.clients import has_runtime
from stretto._engine.xla.device import default_device
from stretto._engine.xla.sharded import sharding_if_any
from stretto.compat.jax import tree_util
from stretto.compat.jax.avals import Tracer, is_key
from stretto.random.key_arrays import KeyArray

_UINT32 = np.dtype(np.uint32)


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    device: Any = None,
    backend: str | None = None,
    abstracted_axes: Any = None,
    **options: Any,
) -> Any:
    """Call ``stretto.jit`` with JAX's parameters.

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
    """Return a function of a backend, which raises as JAX's where there is none."""

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
    """Call ``pmap`` with JAX's parameters; what is on the default device alone is plain.

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
        return tree_util.map_(_plain, over_devices(*args, **kwargs))

    return mapped


def _plain(leaf: Any) -> Any:
    """Return an array that is on the default device alone, without its sharding."""
    sharding = sharding_if_any(leaf)
    here = default_device()
    if sharding is None or sharding.device_set != {here}:
        return leaf
    return stretto.device_put(leaf, here)


def checkpoint(
    fun: Callable[..., Any] | None = None, *, concrete: bool = False, **options: Any
) -> Any:
    """Call ``stretto.checkpoint`` with JAX's parameters."""
    if concrete:
        raise NotImplementedError("jax.checkpoint: use static_argnums in place of concrete=True")
    if fun is None:
        return functools.partial(checkpoint, **options)
    return stretto.checkpoint(fun, **options)


remat = checkpoint


def named_call(fun: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Call ``stretto.named_call``, also as a decorator with a name."""
    if fun is None:
        return functools.partial(named_call, name=name)
    return named(fun, name=name)


def make_mesh(
    axis_shapes: Any, axis_names: Any, axis_types: Any = None, *, devices: Any = None
) -> Any:
    """Call ``stretto.make_mesh``; the types of axes are looked at nowhere."""
    del axis_types
    follow_flags()
    return stretto.make_mesh(axis_shapes, axis_names, devices=devices)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Call ``stretto.lax.with_sharding_constraint``, for which one device is a place as well."""
    if isinstance(shardings, (platforms.Device, SingleDeviceSharding)):
        return stretto.device_put(x, shardings)
    return stretto.lax.with_sharding_constraint(x, shardings)


def device_get(x: Any) -> Any:
    """Return the arrays of a tree in NumPy; typed keys and traced values stay what they are."""
    stays = lambda leaf: is_key(leaf) or isinstance(leaf, Tracer)
    return tree_util.map_(lambda leaf: leaf if stays(leaf) else stretto.device_get(leaf), x)


def described(leaf: Any) -> Any:
    """Return keys of which only shape and dtype are known, where that is what a leaf says."""
    if isinstance(leaf, ShapeDtypeStruct) and hasattr(leaf.dtype, "extended_kind"):
        implementation = leaf.dtype.implementation
        words = ShapeDtypeStruct((*leaf.shape, implementation.size), _UINT32)
        return KeyArray(words, implementation)  # type: ignore[arg-type]
    return leaf


def description(leaf: Any) -> Any:
    """Return what is known of keys, of which only the words are described."""
    return ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_key(leaf) else leaf


def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of the results, those of typed keys among them.

    A result may be a ``ShapeDtypeStruct`` already.
    """
    args, kwargs = tree_util.map_(described, (args, kwargs))
    known: list[ShapeDtypeStruct | None] = []

    def note(leaf: Any) -> Any:
        is_known = isinstance(leaf, ShapeDtypeStruct)
        known.append(leaf if is_known else None)
        return 0 if is_known else leaf

    out = stretto.eval_shape(
        lambda *xs, **ys: tree_util.map_(note, fun(*xs, **ys)), *args, **kwargs
    )
    given = iter(known)

    def known_or_traced(leaf: Any) -> Any:
        struct = next(given)
        return description(leaf) if struct is None else struct

    return tree_util.map_(known_or_traced, out)


def _refuse(reduce_axes: Any, caller: str) -> None:
    if tuple(reduce_axes):
        raise NotImplementedError(
            f"jax.{caller}: reduce_axes={reduce_axes!r} is not in Stretto, nor in JAX any more: "
            f"sum with jax.lax.psum"
        )


def _with_axes(derivative: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``stretto.grad`` or ``value_and_grad`` with JAX's parameters."""
    name = derivative.__name__

    def transformed(
        fun: Callable[..., Any],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        holomorphic: bool = False,
        allow_int: bool = False,
        reduce_axes: Sequence[Any] = (),
    ) -> Callable[..., Any]:
        _refuse(reduce_axes, name)
        return derivative(fun, argnums, has_aux, holomorphic, allow_int)

    transformed.__name__ = transformed.__qualname__ = name
    transformed.__doc__ = f"``stretto.{name}`` with JAX's parameters."
    return transformed


grad, value_and_grad = _with_axes(stretto.grad), _with_axes(stretto.value_and_grad)


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Any = ()
) -> Any:
    """Call ``stretto.vjp`` with JAX's parameters."""
    _refuse(reduce_axes, "vjp")
    if not has_aux:
        leaves, structure = tree_util.flatten(primals)
        if any([getattr(x, "dtype", None) == float0 for x in leaves]):
            return _vjp_beside(fun, leaves, structure)
    return stretto.vjp(fun, *primals, has_aux=has_aux)


def _vjp_beside(fun: Callable[..., Any], leaves: Sequence[Any], structure: Any) -> Any:
    """Return the result and the reverse derivative beside leaves of float0, which hold nothing."""
    apart = lambda xs: {k: x for k, x in enumerate(xs) if getattr(x, "dtype", None) == float0}
    still = apart(leaves)
    found: list[Any] = []

    def moving(*xs: Any) -> list[Any]:
        given = iter(xs)
        every = [still[k] if k in still else next(given) for k in range(len(leaves))]
        outs, definition = tree_util.flatten(fun(*structure.unflatten(every)))
        found[:] = definition, apart(outs), len(outs)
        return [out for k, out in enumerate(outs) if k not in found[1]]

    outs, pull = stretto.vjp(moving, *[x for k, x in enumerate(leaves) if k not in still])
    definition, without, count = found
    own = iter(outs)
    result = definition.unflatten([without[k] if k in without else next(own) for k in range(count)])

    def back(cotangents: Any) -> Any:
        cts = definition.flatten_up_to(cotangents)
        grads = iter(pull([ct for k, ct in enumerate(cts) if k not in without]))
        every = [
            np.zeros(np.shape(x), float0) if k in still else next(grads)
            for k, x in enumerate(leaves)
        ]
        return structure.unflatten(every)

    return result, back


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Any:
    """Call ``stretto.linear_transpose`` with JAX's parameters."""
    _refuse(reduce_axes, "linear_transpose")
    return stretto.linear_transpose(fun, *primals)


class custom_jvp(stretto.custom_jvp[..., Any]):
    """``stretto.custom_jvp``; at rest its function is called with the arguments as they are."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function's value."""
        return _call_at_rest(self, super().__call__, args, kwargs)


class custom_vjp(stretto.custom_vjp[..., Any]):
    """``stretto.custom_vjp``; at rest its function is called with the arguments as they are."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function's value."""
        return _call_at_rest(self, super().__call__, args, kwargs)


def _call_at_rest(
    function: Any, transformed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if not state.interpreter.at_rest:
        return transformed(*args, **kwargs)
    function.check_rules()
    return function.fun(*args, **kwargs)


_NAME = "__jitted_as_jax__"


class _Kept(dict[Any, Any]):
    """Holds what a function was compiled as, by the options; pickles leave it behind."""

    def __init__(self, fun: Any = None) -> None:
        super().__init__()
        self.fun = None if fun is None else weakref.ref(fun)

    def is_of(self, fun: Any) -> bool:
        """Say whether it is the function's own, and not copied by a decorator from another."""
        return self.fun is not None and self.fun() is fun

    def __reduce__(self) -> Any:
        return _Kept, ()


def shared_jit(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return ``stretto.jit(fun, **options)``; that of an earlier call if there was one.

    The first is kept as long as somebody else does, and what it has traced as long as the function.
    If it is gone when the same function is jitted again, the next has that, and is kept as long.
    """
    if type(fun) is not FunctionType:
        return stretto.jit(fun, **options)
    key = tuple(sorted(options.items()))
    try:
        hash(key)
    except TypeError:  # options that are lists
        return stretto.jit(fun, **options)
    kept = vars(fun).get(_NAME)
    if kept is None or not kept.is_of(fun):
        kept = vars(fun)[_NAME] = _Kept(fun)
    known = kept.get(key)
    if type(known) is tuple:
        first, entries = known
        made = first()
        if made is None:
            made = kept[key] = stretto.jit(fun, **options)
            made._entries = entries
        return made
    if known is None:
        known = stretto.jit(fun, **options)
        kept[key] = weakref.ref(known), known._entries
    return known


_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


class Backend:
    """A kind of devices."""

    def __init__(self, platform: str) -> None:
        self.platform = platform


class _Started(Mapping[str, Backend]):
    """The kinds of devices in use, by name: there are none until a program needs them."""

    def __init__(self) -> None:
        self.asked = False
        self.flagged = 1

    def _names(self) -> tuple[str, ...]:
        return ("cpu",) if self.asked or has_runtime() else ()

    def __getitem__(self, name: str) -> Backend:
        if name not in self._names():
            raise KeyError(name)
        return Backend(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


STARTED: Any = _Started()


def read_flags() -> None:
    """Set the number of devices that ``XLA_FLAGS`` says, unless another was set already."""
    flag = _FLAG.search(os.environ.get("XLA_FLAGS", ""))
    count = int(flag[1]) if flag else 1
    if count != config.num_cpu_devices == STARTED.flagged:
        config.num_cpu_devices = STARTED.flagged = count


def follow_flags() -> None:
    """Read the flags a last time: devices are needed now, and do not change any more."""
    if not STARTED:
        STARTED.asked = True
        read_flags()


def _strong(leaf: Any) -> Any:
    weak = isinstance(leaf, Value) and leaf.type.weak_type
    return lax.convert_element_type(leaf, leaf.dtype) if weak else leaf


def as_called(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as programs of JAX's call it.

    No array that it gets is weak, and what it raises becomes a ``RuntimeError`` with that in its
    text, where clients look for the names of their own errors.
    """
    if not callable(callback):
        return callback

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            args, kwargs = tree_util.map_(_strong, (args, kwargs))
            return callback(*args, **kwargs)
        except Exception as error:
            lines = "".join(traceback.format_exception(error))
            raise RuntimeError(f"INTERNAL: error calling a Python callback: {lines}") from error

    call.__name__ = getattr(callback, "__name__", type(callback).__name__)
    return call


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    vectorized: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call ``stretto.pure_callback`` with JAX's parameters."""
    if vectorized is not None and vmap_method is None:
        vmap_method = "legacy_vectorized" if vectorized else "sequential"
    return stretto.pure_callback(
        as_called(callback),
        result_shape_dtypes,
        *args,
        sharding=sharding,
        vmap_method="expand_dims" if vmap_method == "legacy_vectorized" else vmap_method,
        **kwargs,
    )


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call ``stretto.io_callback`` with JAX's errors."""
    return stretto.io_callback(
        as_called(callback),
        result_shape_dtypes,
        *args,
        sharding=sharding,
        ordered=ordered,
        **kwargs,
    )


def debug_callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Call ``stretto.debug.callback`` with JAX's errors."""
    debug.callback(as_called(callback), *args, ordered=ordered, partitioned=partitioned, **kwargs)


def debug_print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Call ``stretto.debug.print``; while tracing, its text will not say which values were weak."""
    traced = not state.interpreter.at_rest

    strong = lambda leaf: _strong(leaf) if traced or isinstance(leaf, Tracer) else leaf
    args, kwargs = tree_util.map_(strong, (args, kwargs))
    debug.print(fmt, *args, ordered=ordered, **kwargs)


def breakpoint(**options: Any) -> None:
    """Stop in Python's debugger: while a function is traced, where it is traced."""
    del options
    sys.breakpointhook()
