"""A function's two passes, compiled, on lists of arrays: what PyTorch's autograd calls.

What of a call is not an array, ``Call``, is static: each different one has a ``Half`` of its own,
whose passes ``jit`` compiles for each signature.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import vjp
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.jit.signature import Static
from stretto._engine.core import tree
from stretto._engine.core.caches import room
from stretto._engine.core.rewriting import live, used_inputs
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, Tree
from stretto.random.keys import PRNGKey, fold_in
from stretto.random.streams import keys

Function: TypeAlias = Callable[[list[Any], Any], tuple[Tree, dict[str, Any]]]
"""(arrays, seed) to the result, and the buffers that the call updates, by name."""


class Source(Protocol):
    """What is run: a function of named arrays and of the user's arguments."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arrays, in the order of a call."""
        ...

    def __call__(
        self, arrays: Mapping[str, Any], call: Call, args: Any, kwargs: Any
    ) -> tuple[Tree, dict[str, Any]]:
        """The result, and the buffers that the call updates, by name."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """What of a call is not an array.

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
    """What of a backward pass is not an array.

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
        """Those that are asked for, by what ``vjp`` gave, from those that are not zero.

        PyTorch's gradients of complex numbers are the conjugates of ours.
        """
        given = iter(cotangents)
        leaves = [_conjugate(next(given)) if z is None else snp.zeros(*z) for z in self.zeros]
        (grads,) = pull(tree.unflatten(self.structure, leaves))
        return [_conjugate(g) for g, n in zip(grads, self.needed, strict=True) if n]


def _conjugate(x: Any) -> Any:
    return snp.conj(x) if is_complex(x.dtype) else x


class Kept:
    """What a forward pass keeps for the backward pass; a tree of what it computed.

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
        """What the function ``pull`` needs beside these arrays of the call."""
        places = {id(x): i for i, x in enumerate(arrays)}
        residuals, structure = tree.flatten(pull)
        origins = tuple([places.get(id(x), -1) for x in residuals])
        new = [x for x, i in zip(residuals, origins, strict=True) if i < 0]
        return cls(new, structure, origins)

    def pull(self, arrays: Mapping[int, Any]) -> Any:
        """The function, from those arrays of the call that it needs, by number."""
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
        """Whether a call with such arrays draws random numbers."""
        key = tuple([x.type for x in arrays])
        if key not in self._draws:
            program = self.forward.trace(arrays, seed).program
            room(self._draws)[key] = used_inputs(live(program))[len(arrays)]
        return self._draws[key]

    def backward(self, pull: Any, cotangents: list[Array], what: Cotangents) -> list[Array]:
        """The cotangents that are asked for."""
        run = self._backward.get(what)
        if run is None:

            def backward(pull: Any, cotangents: list[Any]) -> list[Any]:
                return what.pulled(pull, cotangents)

            backward.__name__ = f"backward_{self._name}"
            run = room(self._backward)[what] = jit(backward)
        return run(pull, cotangents)

    def reverse(self, what: Cotangents, wanted: tuple[bool, ...]) -> Half:
        """The backward pass as a function of the forward pass's arrays and of cotangents.

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
        """That of a call, in which these arrays may need gradients."""
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
