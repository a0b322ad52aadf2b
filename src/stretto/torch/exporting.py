"""``to_torch``: modules, functions and ensembles from here as modules of PyTorch.

Their two passes are compiled, on lists of arrays: they are what PyTorch's autograd calls. What of a
call is not an array, ``Call``, is static: each different one has a ``Half`` of its own, whose
passes ``jit`` compiles for each signature.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import stretto.numpy as snp
import stretto.torch
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.jit.signature import Static
from stretto._engine.core import tree
from stretto._engine.core.caches import room
from stretto._engine.core.functions import name_of
from stretto._engine.core.rewriting import live, used_inputs
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, Tree
from stretto.func import functional_call
from stretto.nn.module import Module
from stretto.nn.updating import named_arrays
from stretto.random.keys import PRNGKey, fold_in
from stretto.random.streams import keys, next_key
from stretto.torch.imported_module import Held, ImportedModule
from stretto.torch.importing import is_torch


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
        return stretto.torch.hosting.HostedEnsemble(_of_ensemble(function))
    if isinstance(function, Module):
        return stretto.torch.hosting.HostedModule(_of_module(function))
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"to_torch: expected a module, a function or an Ensemble from here, got a "
            f"{type(function).__name__}"
        )
    source = _Function(function)
    return stretto.torch.hosting.HostedModule(Hosting(source, {"": (source.name, True)}, {}, ()))


class Hosting(NamedTuple):
    """Holds what a PyTorch module is made of.

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
        """The function's name."""
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
        """The class's name."""
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
    """Return what stands for an array where only its type matters."""
    return ShapeDtypeStruct(array.shape, array.dtype)


# Ensembles


@runtime_checkable
class _Members(Protocol):
    """Names what is used of an ``Ensemble``, whose layer is above this one."""

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
    """Return the arrays of all groups; names begin with their group's where there are several."""
    many = len(groups) > 1
    return {
        f"group{g}.{name}" if many else name: array
        for g, group in enumerate(groups)
        for name, array in group.items()
    }


Function: TypeAlias = Callable[[list[Any], Any], tuple[Tree, dict[str, Any]]]
"""(arrays, seed) to the result, and the buffers that the call updates, by name."""


class Source(Protocol):
    """A function of named arrays and of the user's arguments, which is run."""

    @property
    def name(self) -> str:
        """The name by which messages call it."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arrays, in the order of a call."""
        ...

    def __call__(
        self, arrays: Mapping[str, Any], call: Call, args: Any, kwargs: Any
    ) -> tuple[Tree, dict[str, Any]]:
        """Return the result, and the buffers that the call updates, by name."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """Holds what of a call is not an array.

    Args:
        method: the name of the method that is called.
        modes: for each module inside, whether it is in train mode.
        structure: how arguments are nested.
        static: for each leaf of the arguments its value, or None for an array.
    """

    method: str
    modes: tuple[bool, ...]
    structure: Any
    static: tuple[Static | None, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Cotangents:
    """Holds what of a backward pass is not an array.

    Args:
        structure: how the result is nested.
        zeros: for each leaf of the result None, or the shape and dtype of one whose cotangent is
            zero.
        needed: for each of the wanted arrays, whether its cotangent is asked for.
    """

    structure: Any
    zeros: tuple[tuple[tuple[int, ...], Any] | None, ...]
    needed: tuple[bool, ...]

    def pulled(self, pull: Callable[[Any], Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents that are asked for, by what ``vjp`` gave, from those not zero.

        PyTorch's gradients of complex numbers are the conjugates of ours.
        """
        given = iter(cotangents)
        leaves = [_conjugate(next(given)) if z is None else snp.zeros(*z) for z in self.zeros]
        (grads,) = pull(tree.unflatten(self.structure, leaves))
        return [_conjugate(g) for g, n in zip(grads, self.needed, strict=True) if n]


def _conjugate(x: Any) -> Any:
    return snp.conj(x) if is_complex(x.dtype) else x


class Kept:
    """Holds what a forward pass keeps for the backward pass; a tree of what it computed.

    Args:
        values: what it computed.
        structure: that of the function from cotangents to cotangents.
        origins: for each residual the number of the array of the call that it is, or -1 for the
            next of ``values``.
    """

    def __init__(self, values: Sequence[Any], structure: Any, origins: tuple[int, ...]) -> None:
        self.values, self.structure, self.origins = values, structure, origins

    @classmethod
    def of(cls, pull: Tree, arrays: Sequence[Any]) -> Kept:
        """Keep what the function ``pull`` needs beside these arrays of the call."""
        places = {id(x): i for i, x in enumerate(arrays)}
        residuals, structure = tree.flatten(pull)
        origins = tuple([places.get(id(x), -1) for x in residuals])
        new = [x for x, i in zip(residuals, origins, strict=True) if i < 0]
        return cls(new, structure, origins)

    def pull(self, arrays: Mapping[int, Any]) -> Any:
        """Return the function, from those arrays of the call that it needs, by number."""
        new = iter(self.values)
        residuals = [next(new) if i < 0 else arrays[i] for i in self.origins]
        return tree.unflatten(self.structure, residuals)


tree.register_pytree_node(
    Kept,
    lambda kept: (tuple(kept.values), (kept.structure, kept.origins)),
    lambda static, values: Kept(values, *static),
)


class Half:
    """The compiled passes of a function for which these arrays may need gradients.

    Args:
        name: what messages call the function.
        function: the function.
        wanted: for each of its arrays, whether it may need a gradient.
    """

    def __init__(self, name: str, function: Function, wanted: tuple[bool, ...]) -> None:
        self._name, self._function, self._wanted = name, function, wanted
        self._backward: dict[Cotangents, Callable[..., Any]] = {}
        self._reversed: dict[Any, Half] = {}
        self._draws: dict[Any, bool] = {}

        def forward(arrays: list[Any], seed: Any) -> Any:
            if not any(wanted):
                return *function(arrays, seed), None
            result, pull, updates = self._linearized(arrays, seed)
            return result, updates, Kept.of(pull, arrays)

        forward.__name__ = name
        self.forward = jit(forward)
        """(arrays, seed) to (result, updates, what is kept, if a gradient is wanted)."""

    def _linearized(self, arrays: list[Any], seed: Any) -> Any:
        def of_wanted(chosen: list[Any]) -> Any:
            values = iter(chosen)
            pairs = zip(arrays, self._wanted, strict=True)
            return self._function([next(values) if w else x for x, w in pairs], seed)

        of_wanted.__name__ = self._name
        chosen = [x for x, w in zip(arrays, self._wanted, strict=True) if w]
        return vjp(of_wanted, chosen, has_aux=True)

    def draws(self, arrays: list[Array], seed: Array) -> bool:
        """Say whether a call with such arrays draws random numbers."""
        key = tuple([x.type for x in arrays])
        if key not in self._draws:
            program = self.forward.trace(arrays, seed).program
            room(self._draws)[key] = used_inputs(live(program))[len(arrays)]
        return self._draws[key]

    def backward(self, pull: Any, cotangents: list[Array], what: Cotangents) -> list[Array]:
        """Return the cotangents that are asked for."""
        run = self._backward.get(what)
        if run is None:

            def backward(pull: Any, cotangents: list[Any]) -> list[Any]:
                return what.pulled(pull, cotangents)

            backward.__name__ = f"backward_{self._name}"
            run = room(self._backward)[what] = jit(backward)
        return run(pull, cotangents)

    def reverse(self, what: Cotangents, wanted: tuple[bool, ...]) -> Half:
        """Return the backward pass as a function of the forward pass's arrays and of cotangents.

        It computes the forward pass again, so that derivatives of both can be taken.
        """
        half = self._reversed.get((what, wanted))
        if half is None:

            def function(arrays: list[Any], seed: Any) -> Any:
                count = len(self._wanted)
                _, pull, _ = self._linearized(arrays[:count], seed)
                return what.pulled(pull, arrays[count:]), {}

            half = Half(f"backward_{self._name}", function, wanted)
            room(self._reversed)[what, wanted] = half
        return half


class Halves:
    """The halves of all kinds of calls of one source, made when first called; copies share them.

    Args:
        source: what is run.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._halves: dict[Any, Half] = {}

    def of(self, call: Call, wanted: tuple[bool, ...]) -> Half:
        """Return the half of a call, in which these arrays may need gradients."""
        half = self._halves.get((call, wanted))
        if half is None:
            source = self.source

            def function(arrays: list[Any], seed: Any) -> Any:
                rest = iter(arrays[len(source.names) :])
                leaves = [next(rest) if s is None else s.value for s in call.static]
                args, kwargs = tree.unflatten(call.structure, leaves)
                with keys(fold_in(PRNGKey(seed[0]), seed[1])):
                    return source(dict(zip(source.names, arrays)), call, args, kwargs)

            half = room(self._halves)[call, wanted] = Half(source.name, function, wanted)
        return half

    def __deepcopy__(self, memo: object) -> Halves:
        return self  # nothing that it does changes

    def __reduce__(self) -> tuple[Any, ...]:
        return Halves, (self.source,)
