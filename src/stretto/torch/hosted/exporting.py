"""``to_torch``: modules, functions and ensembles from here as modules of PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.core.functions import name_of
from stretto._engine.core.typing import Array, Tree
from stretto.func import functional_call
from stretto.nn.module import Module
from stretto.nn.updating import named_arrays
from stretto.random.streams import next_key
from stretto.torch import hosted
from stretto.torch.hosted.halves import Call, Source
from stretto.torch.imported_module import Held, ImportedModule
from stretto.torch.weights import is_torch


def to_torch(function: Callable[..., Any]) -> Any:
    """Make a PyTorch module of a module, a function or an ensemble from here.

    It takes and gives tensors, also in tuples, lists and dictionaries, and is computed here,
    forward and backward, by programs that are compiled for each signature. PyTorch's optimizers,
    data loaders, other layers and training loops go with it as with any module.

    Args:
        function: a module; a function of arrays, for which others that it uses are constants; or
            an ``Ensemble``, whose stacked arrays become parameters, and whose members' results are
            stacked along a new axis 0. Its ``each`` gives each member its own arguments.

    Returns:
        A ``torch.nn.Module``. It has the arrays of ``function``, copied, as parameters and buffers
        of the same dotted names; ``load_state_dict``, of an ensemble ``replace``, takes trained
        ones back. ``train()`` and ``eval()`` set the modes in which it computes, also of parts;
        an ensemble is in one mode as a whole.

    Raises:
        TypeError: ``function`` is none of these.
        ValueError: a name of an array is taken in ``torch.nn.Module``.

    In a call, tensors are on the CPU; all other arguments are static, and hashable, so numbers that
    vary are better tensors. Random numbers are governed by ``torch.manual_seed``: a call that draws
    any takes one seed from PyTorch's generator. Buffers are updated in place. Second derivatives
    compute the forward pass again. 64-bit integers become 32-bit ones unless ``enable_x64`` is set.

    >>> import stretto as st
    >>> st.to_torch("linear")
    Traceback (most recent call last):
    TypeError: to_torch: expected a module, a function or an Ensemble from here, got a str
    """
    if is_torch(function, "nn.Module"):
        raise TypeError(
            f"to_torch: expected a module, a function or an Ensemble from here, got "
            f"{type(function).__name__}, which is PyTorch's: st.from_torch brings it here"
        )
    if isinstance(function, _Members):
        return hosted.hosting.HostedEnsemble(_of_ensemble(function))
    if isinstance(function, Module):
        return hosted.hosting.HostedModule(_of_module(function))
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"to_torch: expected a module, a function or an Ensemble from here, got a "
            f"{type(function).__name__}"
        )
    source = _Function(function)
    return hosted.hosting.HostedModule(Hosting(source, {"": (source.name, True)}, {}, ()))


class Hosting(NamedTuple):
    """What a PyTorch module is made of.

    Args:
        source: what it runs.
        parts: the kind of each module inside, and whether it is in train mode, by dotted name; its
            own name is empty.
        arrays: those of the source, by dotted name.
        ties: the second names of modules and arrays, each with the first.
    """

    source: Source
    parts: dict[str, tuple[str, bool]]
    arrays: dict[str, Held]
    ties: tuple[tuple[str, str], ...]


# Functions


@dataclasses.dataclass(frozen=True, eq=False)
class _Function:
    """A plain function, which has no arrays."""

    function: Callable[..., Any]
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """That of the function."""
        return name_of(self.function)

    def __call__(
        self, arrays: Mapping[str, Any], call: Call, args: Any, kwargs: Any
    ) -> tuple[Tree, dict[str, Any]]:
        return self.function(*args, **kwargs), {}


# Modules


@dataclasses.dataclass(frozen=True, eq=False)
class _OfModule:
    """A module without its arrays: types stand for them."""

    module: Module
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """That of the class."""
        return self.module._get_name()

    def __call__(
        self, arrays: Mapping[str, Any], call: Call, args: Any, kwargs: Any
    ) -> tuple[Tree, dict[str, Any]]:
        module = self.module.clone()
        for part, mode in zip(module.modules(), call.modes, strict=True):
            part.training = mode
        result, buffers = functional_call(module, arrays, args, kwargs, return_buffers=True)
        return result, {n: x for n, x in buffers.items() if x is not arrays[n]}


def _of_module(module: Module) -> Hosting:
    arrays: dict[str, Held] = {}
    first: dict[int, str] = {}
    ties: list[tuple[str, str]] = []
    _find_ties(module, "", {}, ties)
    for name, (owner, attribute, array) in named_arrays(module).items():
        if first.setdefault(id(array), name) != name:
            ties.append((name, first[id(array)]))
        else:
            persistent = attribute not in owner._unsaved
            arrays[name] = Held(owner._roles[attribute], array, persistent)
    if isinstance(module, ImportedModule):
        ties += module.ties
    light, types = module.clone(), {}
    for owner, attribute, array in named_arrays(light).values():
        owner.__dict__[attribute] = types.setdefault(id(array), _type(array))
    parts = {path: (part._get_name(), part.training) for path, part in module.named_modules()}
    return Hosting(_OfModule(light, tuple(arrays)), parts, arrays, tuple(ties))


def _find_ties(
    module: Module, path: str, first: dict[int, str], ties: list[tuple[str, str]]
) -> None:
    """Add the second places of modules, each with the first."""
    first[id(module)] = path
    for name, child in module.named_children():
        at = f"{path}.{name}" if path else name
        if id(child) in first:
            ties.append((at, first[id(child)]))
        else:
            _find_ties(child, at, first, ties)


def _type(array: Array) -> Any:
    """What stands for an array where only its type matters."""
    return ShapeDtypeStruct(array.shape, array.dtype)


# Ensembles


@runtime_checkable
class _Members(Protocol):
    """What is used of an ``Ensemble``, whose layer is above this one."""

    @property
    def groups(self) -> Sequence[Sequence[Any]]: ...
    def __call__(self, *args: Any, key: Any, **kwargs: Any) -> Any: ...
    def each(self, *args: Any, key: Any, **kwargs: Any) -> Any: ...
    def stateful_call(self, *args: Any, key: Any, **kwargs: Any) -> tuple[Any, _Members]: ...
    def stateful_each(self, *args: Any, key: Any, **kwargs: Any) -> tuple[Any, _Members]: ...
    def state_dict(self) -> list[dict[str, Array]]: ...
    def trainable(self) -> list[dict[str, Array]]: ...
    def replace(self, arrays: Sequence[Mapping[str, Any]], /) -> _Members: ...
    def train(self, mode: bool = True) -> _Members: ...


@dataclasses.dataclass(frozen=True, eq=False)
class _OfEnsemble:
    """An ensemble without its arrays: types stand for them."""

    ensemble: _Members
    names: tuple[str, ...]
    trained: frozenset[str]
    of_modules: bool
    name: str = "Ensemble"

    def __call__(
        self, arrays: Mapping[str, Any], call: Call, args: Any, kwargs: Any
    ) -> tuple[Tree, dict[str, Any]]:
        values = iter([arrays[name] for name in self.names])
        columns = [dict(zip(group, values)) for group in self.ensemble.state_dict()]
        (mode,) = call.modes
        ensemble = self.ensemble.replace(columns).train(mode)
        each, key = call.method == "each", next_key("Ensemble")
        if not (mode and self.of_modules):
            run = ensemble.each if each else ensemble
            return run(*args, key=key, **kwargs), {}
        run = ensemble.stateful_each if each else ensemble.stateful_call
        result, after = run(*args, key=key, **kwargs)
        return result, {n: x for n, x in _by_name(after.state_dict()).items() if n in self.buffers}

    @property
    def buffers(self) -> set[str]:
        """The names of what is not trained."""
        return {*self.names} - self.trained


def _of_ensemble(ensemble: _Members) -> Hosting:
    members = [group[0] for group in ensemble.groups]
    mode = any(getattr(member, "training", False) for member in members)
    whole = ensemble.replace([{} for _ in ensemble.state_dict()]).train(mode)
    arrays, trained = _by_name(whole.state_dict()), _by_name(whole.trainable())
    held = {n: Held("parameter" if n in trained else "buffer", x) for n, x in arrays.items()}
    all_modules = all(isinstance(member, Module) for member in members)
    light = whole.replace([{n: _type(x) for n, x in g.items()} for g in whole.state_dict()])
    source = _OfEnsemble(light, tuple(arrays), frozenset(trained), all_modules)
    return Hosting(source, {"": ("Ensemble", mode)}, held, ())


def _by_name(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The arrays of all groups; names begin with their group's where there are several."""
    many = len(groups) > 1
    return {
        f"group{g}.{name}" if many else name: array
        for g, group in enumerate(groups)
        for name, array in group.items()
    }
