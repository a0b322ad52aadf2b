"""Functions of lists and of flat arguments, and functions with stores around them.

These are ``jax.util``, ``jax.api_util`` and ``jax.extend.linear_util``. A transformation is a
generator that yields the arguments of what it wraps, receives its result, and yields the result of
the whole. ``transformation2`` is a function of what it wraps instead.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from stretto.compat.jax import tree_util
from stretto.compat.jax.avals import get_aval


class DebugInfo(NamedTuple):
    """Names a function in messages."""

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
        """Return the function with one more transformation around it."""
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
    """Return a function that transformations can be put around."""
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


wraps = functools.wraps
HashablePartial = functools.partial
cache = functools.lru_cache
weakref_lru_cache = functools.lru_cache


def _equal_lists(sequences: Sequence[Iterable[Any]]) -> list[list[Any]]:
    lists = [list(s) for s in sequences]
    for other in lists[1:]:
        if len(other) != len(lists[0]):
            raise ValueError(f"length mismatch: {[len(x) for x in lists]}")
    return lists


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """Return ``map`` of sequences of one length, as a list."""
    return list(map(f, *_equal_lists(args)))


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return ``zip`` of sequences of one length, as a list."""
    return list(zip(*_equal_lists(args)))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the firsts and the seconds of pairs."""
    made = list(pairs)
    return tuple([a for a, _ in made]), tuple([b for _, b in made])


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Return the firsts, seconds and thirds of triples."""
    made = list(triples)
    return tuple([tuple([t[i] for t in made]) for i in range(3)])


def concatenate(xs: Iterable[Sequence[Any]]) -> list[Any]:
    """Return one list of several."""
    return list(itertools.chain.from_iterable(xs))


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Return parts of these lengths, and the rest."""
    remaining, out = list(args), []
    for n in ns:
        out.append(remaining[:n])
        remaining = remaining[n:]
    return [*out, remaining]


def partition_list(bs: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return those where the boolean is false, and those where it is true."""
    pairs = safe_zip(bs, xs)
    return [x for b, x in pairs if not b], [x for b, x in pairs if b]


def merge_lists(bs: Sequence[bool], xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
    """Return what ``partition_list`` took apart."""
    false, true = iter(xs), iter(ys)
    return [next(true) if b else next(false) for b in bs]


def subvals(xs: Iterable[Any], replacements: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return the values, with those at some places replaced."""
    out = list(xs)
    for i, x in replacements:
        out[i] = x
    return tuple(out)


def split_dict(dct: dict[Any, Any], names: Sequence[Any]) -> list[Any]:
    """Return the values of a dictionary, in this order of names."""
    remaining = dict(dct)
    out = [remaining.pop(name) for name in names]
    if remaining:
        raise ValueError(f"split_dict: more keys than names: {sorted(map(str, remaining))}")
    return out


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes its first argument first, and the others later."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


def toposort(end_nodes: Sequence[Any]) -> list[Any]:
    """Return the nodes in an order in which each comes after its ``parents``."""
    done: dict[int, Any] = {}

    def visit(node: Any) -> None:
        if id(node) not in done:
            for parent in node.parents:
                visit(parent)
            done[id(node)] = node

    for node in end_nodes:
        visit(node)
    return list(done.values())


class HashableFunction:
    """A function that is equal to another of the same code and closure."""

    def __init__(self, f: Callable[..., Any], closure: Any) -> None:
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HashableFunction)
            and self.f.__code__ == other.f.__code__
            and self.closure == other.closure
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)


def _flatten_fun(call: Callable[..., Any], store: Any, in_tree: Any, *args: Any) -> list[Any]:
    positional, named = in_tree.unflatten(args)
    flat, definition = tree_util.flatten(call(*positional, **named))
    store.store(definition)
    return flat


def _flatten_fun_nokwargs(
    call: Callable[..., Any], store: Any, in_tree: Any, *args: Any
) -> list[Any]:
    flat, definition = tree_util.flatten(call(*in_tree.unflatten(args)))
    store.store(definition)
    return flat


flatten_fun = transformation_with_aux2(_flatten_fun)
flatten_fun_nokwargs = transformation_with_aux2(_flatten_fun_nokwargs)


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Any = (), kwargs: Any = None, **more: Any
) -> DebugInfo:
    """Return what a function is called in messages."""
    del args, kwargs, more
    return DebugInfo(traced_for, getattr(fun, "__name__", "<unnamed function>"))


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: Any, argnames: Any
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the positions and the names of arguments, where one of the two is given."""
    if argnums is None and argnames is None:
        return (), ()
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (
        () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    )
    if argnums is not None and argnames is not None:
        return numbers, names
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = list(sig.parameters.values())
    if argnums is None:
        found = [i for i, p in enumerate(parameters) if p.kind is kinds and p.name in names]
        return tuple(found), names
    count = len(parameters)
    chosen = [i % count for i in numbers if -count <= i < count]
    return numbers, tuple([parameters[i].name for i in chosen if parameters[i].kind is kinds])


def shaped_abstractify(x: Any) -> Any:
    """Return the abstract value."""
    return get_aval(x)


def flatten_axes(name: str, treedef: Any, axis_tree: Any, **options: Any) -> list[Any]:
    """Return the axis for each leaf of a structure, of a prefix of it."""
    del options
    whole = treedef.unflatten([object()] * treedef.num_leaves)
    out: list[Any] = []
    flat, prefix = tree_util.flatten(axis_tree, lambda x: x is None)
    try:
        parts = prefix.flatten_up_to(whole)
    except ValueError as error:
        raise ValueError(f"{name}: must be a prefix of {treedef}: {error}") from None
    for axis, part in zip(flat, parts):
        out.extend([axis] * len(tree_util.leaves(part)))
    return out


def argnums_partial(f: Any, dyn_argnums: Any, args: Any, **options: Any) -> Any:
    """Return a function of some of its arguments, with the others fixed; and these arguments."""
    del options
    places = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    places = tuple([i % len(args) for i in places])

    def partial(call: Callable[..., Any], *given: Any, **kwargs: Any) -> Any:
        whole = list(args)
        for place, x in zip(places, given):
            whole[place] = x
        return call(*whole, **kwargs)

    return transformation2(partial)(f), [args[i] for i in places]


def donation_vector(donate_argnums: Any, donate_argnames: Any, in_tree: Any) -> tuple[bool, ...]:
    """Say whether each leaf is donated."""
    del donate_argnames
    args, _ = in_tree.unflatten([0] * in_tree.num_leaves)
    return tuple([i in donate_argnums for i, arg in enumerate(args) for _ in tree_util.leaves(arg)])


def fun_signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function, if it has one."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None
