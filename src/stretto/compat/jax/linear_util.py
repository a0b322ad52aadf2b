"""Functions with stores and transformations around them: ``jax.extend.linear_util``.

A transformation is a generator that yields the arguments of what it wraps, receives its result, and
yields the result of the whole. ``transformation2`` is a function of what it wraps instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = [
    "DebugInfo",
    "Store",
    "StoreException",
    "WrappedFun",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]


class DebugInfo(NamedTuple):
    """What a function is called in messages."""

    traced_for: str = ""
    func_src_info: str = ""
    arg_names: Any = None
    result_paths: Any = None


class StoreException(Exception):
    """A store was read while empty, or filled twice."""


class Store:
    """Keeps one value, which a transformation gives beside its result."""

    def __init__(self) -> None:
        self._full = False
        self._value: Any = None

    def store(self, value: Any) -> None:
        """Keep the value."""
        if self._full:
            raise StoreException("the store has a value already")
        self._value, self._full = value, True

    def reset(self) -> None:
        """Forget the value."""
        self._value, self._full = None, False

    @property
    def val(self) -> Any:
        """The value."""
        if not self._full:
            raise StoreException("the store has no value yet")
        return self._value


class WrappedFun:
    """A function, and the transformations around it, the outermost first."""

    def __init__(
        self,
        f: Callable[..., Any],
        transforms: tuple[Any, ...] = (),
        params: dict[str, Any] | None = None,
        debug_info: Any = None,
    ) -> None:
        self.f, self.transforms, self.params = f, transforms, params or {}
        self.debug_info = debug_info
        self.in_type = None

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def wrap(self, make: Callable[..., Any], args: Sequence[Any], store: Any) -> WrappedFun:
        """The function with one more transformation around it."""
        return WrappedFun(
            self.f, ((make, tuple(args), store), *self.transforms), self.params, self.debug_info
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call it through all of the transformations."""
        call: Callable[..., Any] = lambda *a, **k: self.f(*a, **{**self.params, **k})
        for make, given, store in reversed(self.transforms):
            call = make(call, given, store)
        return call(*args, **kwargs)

    def __hash__(self) -> int:
        return hash((self.f, tuple([t[:2] for t in self.transforms])))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WrappedFun)
            and self.f == other.f
            and [t[:2] for t in self.transforms] == [t[:2] for t in other.transforms]
        )


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """A function that transformations can be put around."""
    return WrappedFun(f, (), params, debug_info)


def _by_generator(gen: Callable[..., Any], aux: bool) -> Callable[..., Any]:
    def make(inner: Callable[..., Any], given: tuple[Any, ...], store: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            running = gen(*given, *args, **kwargs)
            inner_args, inner_kwargs = next(running)
            out = running.send(inner(*inner_args, **inner_kwargs))
            if aux:
                out, extra = out
                store.store(extra)
            return out

        return call

    return make


def _by_function(gen: Callable[..., Any], aux: bool) -> Callable[..., Any]:
    def make(inner: Callable[..., Any], given: tuple[Any, ...], store: Any) -> Callable[..., Any]:
        stores = (store,) if aux else ()
        return lambda *args, **kwargs: gen(inner, *stores, *given, *args, **kwargs)

    return make


def _decorator(by: Callable[..., Any], aux: bool) -> Callable[..., Any]:
    def decorate(gen: Callable[..., Any]) -> Callable[..., Any]:
        make = by(gen, aux)

        def wrap(fun: WrappedFun, *given: Any) -> Any:
            store = Store() if aux else None
            wrapped = fun.wrap(make, given, store)
            return (wrapped, lambda: store.val) if store is not None else wrapped

        return wrap

    return decorate


transformation = _decorator(_by_generator, False)
transformation_with_aux = _decorator(_by_generator, True)
transformation2 = _decorator(_by_function, False)
transformation_with_aux2 = _decorator(_by_function, True)
