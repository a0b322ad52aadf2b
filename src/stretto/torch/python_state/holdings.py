"""Find what a PyTorch module holds beside parameters and buffers, before and after it runs.

Attributes, containers in them, closures, defaults of arguments, globals that its functions name,
and attributes of its classes: all that Python code may read and change while it is traced.

A container of a class of the user's may compute an element when it is asked for, as does one that
makes a new object of each class that it holds. To look at such a container is to run nothing of it.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import functools
import math
import operator
import random
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

_BASES: tuple[Any, ...] = (collections.OrderedDict, dict, collections.deque, list, set)


class Absent:
    """Stands for an entry that is not there."""


def _base(x: Any) -> Any:
    base: Any = next((base for base in _BASES if isinstance(x, base)), type(x))
    return base


def content_of(x: Any) -> dict[Any, Any]:
    """Return the elements of a container by key or number, those of a set by themselves.

    >>> class Doubled(dict):
    ...     def __getitem__(self, key):
    ...         return 2 * super().__getitem__(key)
    >>> content_of(Doubled(a=1))
    {'a': 1}
    """
    base = _base(x)
    if issubclass(base, dict):
        return dict(dict.items(x))
    if base not in _BASES:  # another kind of mapping
        return dict(x)
    elements = base.__iter__(x)
    return {v: v for v in elements} if base is set else dict(enumerate(elements))


def refill(x: Any, content: dict[Any, Any], now: dict[Any, Any] | None = None) -> None:
    """Make this the content of a container, and leave what is as it was in its place.

    Of a dictionary, only what is ``now`` in it is looked at; everything by default.
    """
    base = _base(x)
    if base is set:
        set.clear(x)
        set.update(x, content)
        return
    if base in (list, collections.deque):
        base.clear(x)
        base.extend(x, content.values())
        return
    now = content_of(x) if now is None else now
    for key in now.keys() - content.keys():
        base.__delitem__(x, key)
    for key, value in content.items():
        if now.get(key, Absent) is not value:
            base.__setitem__(x, key, value)


PLAIN = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
"""Classes of what never changes, and is compared by its value."""


def same(a: Any, b: Any) -> bool:
    """Say whether two values say the same to Python code: one object, or equal plain data."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, PLAIN):
        return a == b or repr(a) == repr(b)  # NaN, too
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all([same(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, dict):
        a, b = content_of(a), content_of(b)
        return a.keys() == b.keys() and all([same(x, b[k]) for k, x in a.items()])
    if isinstance(a, (set, frozenset, types.MethodType)):
        return a == b
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    return False


def is_rebound(a: Any, b: Any, depth: int = 4) -> bool:
    """Say whether two values are alike, but for new tensors in the place of others."""
    if same(a, b):
        return True
    if type(a) is not type(b) or not depth:
        return False
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype
    if isinstance(a, (tuple, list)):
        pairs = zip(a, b, strict=False)
        return len(a) == len(b) and all([is_rebound(x, y, depth - 1) for x, y in pairs])
    if isinstance(a, dict):
        a, b = content_of(a), content_of(b)
    elif hasattr(a, "__dict__"):
        a, b = vars(a), vars(b)
    else:
        return False
    return a.keys() == b.keys() and all([is_rebound(x, b[k], depth - 1) for k, x in a.items()])


def equal(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Say whether these have the same elements; NaN is equal to itself."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    x = x.detach()
    if x.is_floating_point() or x.is_complex():
        return bool(((x == y) | (x.isnan() & y.isnan())).all())
    return torch.equal(x, y)


def same_numbers(a: Any, b: Any) -> bool:
    """Say whether these hold the same arrays."""
    return all([np.array_equal(x, y) for x, y in zip(a, b, strict=True)])


_REGISTERED = {"_parameters", "_buffers"}
_LIBRARIES = (sys.stdlib_module_names | {"builtins", "numpy", "stretto", "sympy", "torch"}) - {
    "__main__"
}
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
_INSTALLED = (sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"])
_HERE = "\0"
"""The mark in the words for a place where those for what is inside of it go."""

_MOST = 100_000
"""Objects that are looked at in one module; what is beyond is not."""


@dataclasses.dataclass(frozen=True)
class Change:
    """A difference between two states of a module.

    Args:
        place: what changed, in the user's words: ``self.n``.
        before: what it was; ``Absent`` if it was not there.
        after: what it became, likewise.
        kind: ``"registered"`` for a name of a parameter, buffer or module, ``"random"`` for a
            generator of random numbers; else empty.
    """

    place: str
    before: Any
    after: Any
    kind: str = ""


@dataclasses.dataclass(frozen=True)
class _Holder:
    """An object with entries that may change, and how to read and write all of them."""

    read: Callable[[], dict[Any, Any]]
    write: Callable[[dict[Any, Any]], None]
    name: Callable[[Any], str]
    kind: str = ""


class Snapshot:
    """The state of a module at one time.

    Args:
        module: the module.
        elements: keep the elements of tensors that have no more than this; none by default, as is
            right while a module is traced.
    """

    def __init__(self, module: torch.nn.Module, *, elements: float = 0) -> None:
        walk = _Walk(module)
        self._contents = [(holder, holder.read()) for holder in walk.holders]
        self._tensors = [
            (place, x, x.detach().clone())
            for place, x in walk.tensors
            if 0 < x.numel() <= elements and memory_of(x) and x.layout is torch.strided
        ]
        self._caches = [(cache, cache.cache_info()) for cache in walk.caches]
        self._python, self._numpy = random.getstate(), np.random.get_state()

    def changes(self) -> Iterator[Change]:
        """Yield what is not as it was."""
        for holder, before in self._contents:
            after = holder.read()
            for key in before | after:
                old, new = before.get(key, Absent), after.get(key, Absent)
                if not same(old, new):
                    yield Change(_words(holder.name(key)), old, new, holder.kind)
        if random.getstate() != self._python:
            yield Change("Python's module random", Absent, Absent, "random")
        if not same_numbers(np.random.get_state(), self._numpy):
            yield Change("numpy.random", Absent, Absent, "random")

    def writes(self) -> Iterator[Change]:
        """Yield the tensors whose elements are not as they were."""
        for place, x, before in self._tensors:
            if not equal(x, before):
                yield Change(_words(place), before, x)

    def restore(self) -> None:
        """Make all as it was, but for caches of functions that were called: these are emptied."""
        for holder, before in self._contents:
            after = holder.read()
            if len(after) != len(before) or any(
                [after.get(key, Absent) is not value for key, value in before.items()]
            ):
                holder.write(before)
        with torch.no_grad():
            for change in self.writes():
                change.after.copy_(change.before)
        for cache, before in self._caches:
            if cache.cache_info().misses != before.misses:
                cache.cache_clear()
        random.setstate(self._python)
        np.random.set_state(self._numpy)


@contextmanager
def undone(module: torch.nn.Module) -> Iterator[Snapshot]:
    """Undo what is done to a module in this context: to its tensors, and to what it holds.

    Gives its state before.
    """
    start = Snapshot(module, elements=math.inf)
    registered = [x for part in module.modules() for x in (part._parameters, part._buffers)]
    contents = [dict(x) for x in registered]
    held = [(x, x.data, x.detach().clone()) for x in (*module.parameters(), *module.buffers())]
    hooks = [(x, [dict(table or {}) for table in _hooks_of(x)]) for x, _, _ in held]
    try:
        yield start
    finally:
        for x, tables in hooks:
            for table, content in zip(_hooks_of(x), tables, strict=True):
                if table:
                    table.clear()
                    table.update(content)
        for names, content in zip(registered, contents, strict=True):
            names.clear()
            names.update(content)
        for x, memory, elements in held:
            x.data = memory
            memory.copy_(elements)
        start.restore()


def _hooks_of(x: torch.Tensor) -> tuple[dict[Any, Any] | None, ...]:
    """Return the tables of a tensor's hooks, which are made when the first is registered."""
    return x._backward_hooks, x._post_accumulate_grad_hooks


def place_of(module: torch.nn.Module, tensor: torch.Tensor) -> str:
    """Return where a module holds a tensor, or what shares its memory."""
    tensors = _Walk(module).tensors
    for place, x in tensors:
        if x is tensor:
            return _words(place)
    for place, x in tensors:
        if memory_of(x) == memory_of(tensor) is not None:
            return _words(place)
    sizes = ", ".join(map(str, tensor.shape))
    return f"a tensor of shape ({sizes}) and dtype {tensor.dtype}"


def trained(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors with a place in memory that require gradients, with where they are held."""
    return ((_words(p), x) for p, x in _Walk(module).tensors if x.requires_grad and memory_of(x))


def memory_of(x: Any) -> int | None:
    """Return the memory that a tensor lies in; None if it has no elements there."""
    try:
        return x.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):  # sparse, on the device meta, or another's class
        return None


# The way through what a module holds


class _Walk:
    """Finds what a module reaches."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.holders: list[_Holder] = []
        self.tensors: list[tuple[str, torch.Tensor]] = []
        self.caches: list[Any] = []
        self._seen: dict[int, Any] = {}
        self._classes: set[type] = set()
        self._modules: set[tuple[types.ModuleType, frozenset[str]]] = set()
        self._left: list[tuple[Any, str]] = [(module, "self")]
        while self._left and len(self._seen) < _MOST:
            x, place = self._left.pop()
            if not isinstance(x, (*PLAIN, types.ModuleType)) and id(x) not in self._seen:
                self._seen[id(x)] = x
                self._look(x, place)

    def _look(self, x: Any, place: str) -> None:
        for kinds, look in _LOOKS:
            if isinstance(x, kinds):
                look(self, x, place)
                return
        if isinstance(x, MutableMapping) and (
            _is_of_library(type(x)) or not hasattr(x, "__dict__")
        ):
            self._entries(x, place)
        elif isinstance(x, Iterator):
            self._add(lambda: {"": _progress(x)}, lambda _: None, lambda _: place, inside=False)
        else:
            self._object(x, place)

    def _tensor(self, x: torch.Tensor, place: str) -> None:
        if is_real(x):
            self.tensors.append((place, x))

    def _module(self, x: torch.nn.Module, place: str) -> None:
        if isinstance(x, torch.jit.ScriptModule):  # it is held in C++, and refused
            return
        self._attributes(x, place)
        self._class(type(x), place)

    def _fixed(self, x: Any, place: str) -> None:
        self._left += [(part, _inside(place, f"[{k}]")) for k, part in enumerate(x)]

    def _partial(self, x: functools.partial[Any], place: str) -> None:
        self._left += [(x.func, place), (x.args, _inside(place, ".args")), (x.keywords, place)]

    def _method(self, x: types.MethodType, place: str) -> None:
        self._left += [(x.__self__, place), (x.__func__, place)]

    def _cache(self, x: Any, place: str) -> None:
        self.caches.append(x)
        self._left.append((x.__wrapped__, place))

    def _add(
        self,
        read: Callable[[], dict[Any, Any]],
        write: Callable[[dict[Any, Any]], None],
        name: Callable[[Any], str],
        *,
        inside: bool = True,
        kind: str = "",
    ) -> None:
        self.holders.append(_Holder(read, write, name, kind))
        if inside:
            self._left += [(value, name(key)) for key, value in read().items()]

    def _attributes(self, x: Any, place: str) -> None:
        held = vars(x)
        registered = _REGISTERED if isinstance(x, torch.nn.Module) else set()

        def read() -> dict[Any, Any]:
            return {k: v for k, v in held.items() if k not in registered}

        def name(key: Any) -> str:
            return place if key == "_modules" and registered else _inside(place, f".{key}")

        self._add(read, lambda content: refill(held, content, read()), name)
        for key in registered:
            self._names(held[key], place)

    def _names(self, held: dict[str, Any], place: str) -> None:
        """Look at which parameters or buffers there are; what they are is no state of Python's."""

        def write(content: dict[Any, Any]) -> None:
            for key in held.keys() - content.keys():
                del held[key]

        self._add(
            lambda: dict.fromkeys(held),
            write,
            lambda key: _inside(place, f".{key}"),
            kind="registered",
        )
        self.tensors += [(_inside(place, f".{k}"), x) for k, x in held.items() if is_real(x)]

    def _entries(self, x: Any, place: str) -> None:
        modules = place.startswith("self") and all(
            [isinstance(v, torch.nn.Module) for v in content_of(x).values()]
        )
        self._content(x, place, lambda key: _inside(place, f".{key}" if modules else f"[{key!r}]"))

    def _sequence(self, x: Any, place: str) -> None:
        self._content(x, place, lambda key: _inside(place, f"[{key}]"))

    def _set(self, x: set[Any], place: str) -> None:
        self._content(x, place, lambda _: place)

    def _content(self, x: Any, place: str, name: Callable[[Any], str]) -> None:
        """Look into what a container holds, and what an object of a user's class has beside it."""
        self._add(lambda: content_of(x), lambda content: refill(x, content), name)
        self._object(x, place)

    def _object(self, x: Any, place: str) -> None:
        if not _is_of_library(type(x)) and hasattr(x, "__dict__"):
            self._attributes(x, place)
            self._class(type(x), place)

    def _array(self, x: np.ndarray, place: str) -> None:
        def write(content: dict[Any, Any]) -> None:
            np.copyto(x, np.frombuffer(content[""], x.dtype).reshape(x.shape))

        if x.nbytes < _MOST and x.flags.writeable and not x.dtype.hasobject:
            self._add(lambda: {"": x.tobytes()}, write, lambda _: place)

    def _generator(self, x: Any, place: str) -> None:
        """Look into a generator of random numbers."""
        if isinstance(x, np.random.Generator):
            read, write = lambda: x.bit_generator.state, functools.partial(_set_state, x)
        elif isinstance(x, random.Random):
            read, write = x.getstate, x.setstate
        else:
            read, write = lambda: x.get_state().numpy().tobytes(), lambda _: None
        self._add(
            lambda: {"": read()},
            lambda content: write(content[""]),
            lambda _: place,
            inside=False,
            kind="random",
        )

    def _function(self, f: types.FunctionType, _: str) -> None:
        if _is_of_library(f):
            return
        name = f.__qualname__.replace("<locals>.", "")
        for variable, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            if variable != "__class__":
                self._cell(cell, f"{variable}{_HERE}, which {name} closes over")
        self._left += [(x, f"a default{_HERE} of {name}") for x in f.__defaults__ or ()]
        for variable, x in (f.__kwdefaults__ or {}).items():
            self._left.append((x, f"{variable}{_HERE}, a default of {name}"))
        self._globals(f.__globals__, _names_in(f.__code__), f)

    def _cell(self, cell: types.CellType, place: str) -> None:
        def read() -> dict[Any, Any]:
            try:
                return {"": cell.cell_contents}
            except ValueError:  # it is empty
                return {}

        def write(content: dict[Any, Any]) -> None:
            if content:
                cell.cell_contents = content[""]
            else:
                del cell.cell_contents

        self._add(read, write, lambda _: place)

    def _globals(self, held: dict[str, Any], names: set[str], f: types.FunctionType) -> None:
        """Look into the globals that a function names, and of modules those that it may mean.

        Functions of installed packages use much of these: their data is looked at, and what they
        call is not.
        """
        where = held.get("__name__", "its module")
        own = {name for name in names if name in held or not hasattr(builtins, name)}
        installed = _is_installed(f.__module__)
        if installed:
            own = {k for k in own if not isinstance(held.get(k), _CODE)}

        def read() -> dict[Any, Any]:
            return {name: held[name] for name in own if name in held}

        def write(content: dict[Any, Any]) -> None:
            refill(held, content, read())

        self._add(read, write, lambda name: f"the global {where}.{name}")
        for name in () if installed else own:
            other = held.get(name)
            if isinstance(other, types.ModuleType) and not _is_of_library(other):
                self._globals_of(other, names, f)

    def _globals_of(self, module: types.ModuleType, names: set[str], f: types.FunctionType) -> None:
        key = module, frozenset(names & vars(module).keys())
        if key not in self._modules and not _is_installed(module.__name__):
            self._modules.add(key)
            self._globals(vars(module), set(key[1]), f)

    def _class(self, cls: type, _: str) -> None:
        for each in cls.__mro__:
            if _is_of_library(each) or each in self._classes:
                continue
            self._classes.add(each)
            own = [k for k in vars(each) if not (k.startswith("__") and k.endswith("__"))]
            values = {k for k in own if not _is_code(vars(each)[k])}
            self._class_values(each, values)
            if _is_installed(each.__module__) and not issubclass(each, torch.nn.Module):
                continue
            self._left += [(_function_of(vars(each)[k]), k) for k in own if k not in values]
            if "__call__" in vars(each):
                self._left.append((_function_of(vars(each)["__call__"]), "__call__"))

    def _class_values(self, cls: type, names: set[str]) -> None:
        def read() -> dict[Any, Any]:
            return {k: vars(cls)[k] for k in names if k in vars(cls)}

        def write(content: dict[Any, Any]) -> None:
            for k, value in content.items():
                if vars(cls).get(k, Absent) is not value:
                    setattr(cls, k, value)

        self._add(read, write, lambda k: f"{cls.__name__}.{k}")


_LOOKS: tuple[tuple[Any, Callable[[_Walk, Any, str], None]], ...] = (
    (torch.Tensor, _Walk._tensor),
    (torch.nn.Module, _Walk._module),
    (dict, _Walk._entries),
    ((list, collections.deque), _Walk._sequence),
    (set, _Walk._set),
    ((tuple, frozenset), _Walk._fixed),
    (np.ndarray, _Walk._array),
    ((np.random.Generator, random.Random, torch.Generator), _Walk._generator),
    (functools.partial, _Walk._partial),
    (types.MethodType, _Walk._method),
    (types.FunctionType, _Walk._function),
    (functools._lru_cache_wrapper, _Walk._cache),
    (type, _Walk._class),
)
"""The functions that look into objects, by kind; the first that fits counts."""


def is_real(x: Any) -> bool:
    """Say whether this is a tensor with elements, and none of a trace."""
    traced = (torch._subclasses.FakeTensor, torch._subclasses.functional_tensor.FunctionalTensor)
    return isinstance(x, torch.Tensor) and not isinstance(x, traced)


def _is_of_library(x: Any) -> bool:
    """Say whether a class, function or module is of a library that modules keep no state in."""
    name = x.__name__ if isinstance(x, types.ModuleType) else getattr(x, "__module__", "") or ""
    return name.partition(".")[0] in _LIBRARIES


def _set_state(x: np.random.Generator, state: Any) -> None:
    x.bit_generator.state = state


def _progress(x: Iterator[Any]) -> Any:
    """Return how far an iterator is, as far as one can tell without a step."""
    frame = getattr(x, "gi_frame", None)
    inside = (frame.f_lasti, tuple(map(id, frame.f_locals.values()))) if frame else ()
    return repr(x), operator.length_hint(x, -1), inside


@functools.cache
def _is_installed(name: str | None) -> bool:
    """Say whether a module is of a package that was installed, and not of the user's own."""
    found = sys.modules.get((name or "").partition(".")[0])
    return (getattr(found, "__file__", None) or "").startswith(_INSTALLED)


def _is_code(x: Any) -> bool:
    kinds = (staticmethod, classmethod, property, functools.cached_property, type)
    return isinstance(x, kinds) or callable(x) or hasattr(type(x), "__get__")


def _function_of(x: Any) -> Any:
    for attribute in ("__func__", "fget", "func"):
        if not isinstance(x, (functools.partial, types.FunctionType)) and hasattr(x, attribute):
            return getattr(x, attribute)
    return x


@functools.cache
def _names_in(code: types.CodeType) -> set[str]:
    inner = [_names_in(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    return set(code.co_names).union(*inner)


def _inside(place: str, entry: str) -> str:
    return place.replace(_HERE, entry + _HERE) if _HERE in place else place + entry


def _words(place: str) -> str:
    return place.replace(_HERE, "")
