"""PyTorch's modules that are computed here, and what autograd sees of them.

The memory of a call's tensors is borrowed until it is computed; what it computes becomes PyTorch's,
results and residuals alike.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from stretto._engine.api.jit.signature import Static
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value
from stretto._engine.core.types import array_type
from stretto._engine.core.typing import Tree
from stretto._engine.xla.array import Array, wait_for_all
from stretto.torch.crossing import borrowed, given, to_torch
from stretto.torch.exporting import Call, Cotangents, Half, Halves, Kept

if TYPE_CHECKING:
    from stretto.torch.exporting import Hosting

_NO_SEED = np.zeros(2, np.uint32)


@dataclasses.dataclass
class _Run:
    """Holds what autograd's function knows of a call beside its tensors, and what comes out.

    Args:
        name: what messages call it.
        half: what is run.
        wanted: for each tensor, whether it may need a gradient.
        names: the names of the first tensors.
        seed: that of random numbers; None before it is drawn.
        structure: how the results are nested.
        types: shape and dtype of each result; results come first of all that comes out.
        updates: the names of the buffers whose new values come next.
        kept: what comes last, without its values; None if nothing is kept.
    """

    name: str
    half: Half
    wanted: tuple[bool, ...]
    names: tuple[str, ...] = ()
    seed: Array | None = None
    structure: Any = None
    types: tuple[tuple[tuple[int, ...], Any], ...] = ()
    updates: tuple[str, ...] = ()
    kept: Kept | None = None

    def __call__(self, tensors: Sequence[Any]) -> tuple[Tree, dict[str, Any]]:
        """Return the result, and the buffers that are updated, by name."""
        out = _Passes.apply(self, *tensors)
        count = len(self.types)
        result = tree.unflatten(self.structure, out[:count])
        return result, dict(zip(self.updates, out[count:], strict=False))


class _Passes(torch.autograd.Function):
    """A function from here as one of PyTorch's operations."""

    @staticmethod
    def forward(run: _Run, *tensors: Any) -> Any:
        """Return results, then updated buffers, then what is kept."""
        arrays = [borrowed(x, run.name) for x in tensors]
        if run.seed is None:
            run.seed = _seed(run.half, arrays)
        result, updates, kept = run.half.forward(arrays, run.seed)
        leaves, run.structure = tree.flatten(result)
        run.types = tuple([(x.shape, x.dtype) for x in leaves])
        run.updates = tuple(updates)
        values = [*leaves, *updates.values()]
        if kept:
            values += kept.values
            run.kept = Kept((), kept.structure, kept.origins)
        return tuple(_given_away(values, run.name))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Save all tensors: PyTorch then sees to it that nobody has written to them."""
        ctx.run, *tensors = inputs
        run: _Run = ctx.run
        if run.kept is None:
            return
        count = len(run.types)
        constant = [x for x in output[:count] if not (x.is_floating_point() or x.is_complex())]
        ctx.mark_non_differentiable(*constant, *output[count:])
        ctx.set_materialize_grads(False)
        for k, name in enumerate(run.names):
            if name in run.updates:  # which are about to be written
                tensors[k] = tensors[k].clone()
        ctx.save_for_backward(*tensors, *output[count + len(run.updates) :])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of the tensors."""
        run: _Run = ctx.run
        assert run.kept is not None
        saved, count = ctx.saved_tensors, len(run.wanted)
        tensors, values = saved[:count], saved[count:]
        grads = grads[: len(run.types)]
        pairs = zip(grads, run.types, strict=True)
        zeros = tuple([type if g is None else None for g, type in pairs])
        asked = ctx.needs_input_grad[1:]
        needed = tuple([n for n, w in zip(asked, run.wanted, strict=True) if w])
        what = Cotangents(run.structure, zeros, needed)
        cotangents = [g for g in grads if g is not None]
        if torch.is_grad_enabled():  # by create_graph=True: the result is differentiated too
            again = [*tensors, *cotangents]
            wanted = tuple([x.requires_grad for x in again])
            half = run.half.reverse(what, wanted)
            found, _ = _Run(run.name, half, wanted, seed=run.seed)(again)
        else:
            arrays = {i: borrowed(tensors[i], run.name) for i in {*run.kept.origins} if i >= 0}
            residuals = [borrowed(x, run.name) for x in values]
            pull = Kept(residuals, run.kept.structure, run.kept.origins).pull(arrays)
            found = run.half.backward(pull, [borrowed(g, run.name) for g in cotangents], what)
            found = _given_away(found, run.name)
        found = iter(found)
        out = [next(found) if n and w else None for n, w in zip(asked, run.wanted, strict=True)]
        return None, *out

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Refuse."""
        raise NotImplementedError(
            f"{ctx.run.name}: PyTorch's forward-mode derivatives do not reach into what Stretto "
            f"computes: take stretto.jvp of the function, and give that to stretto.to_torch"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, run: _Run, *tensors: Any) -> Any:
        """Refuse."""
        raise NotImplementedError(
            f"{run.name}: PyTorch's vmap does not reach into what Stretto computes: take "
            f"stretto.vmap of the function, or an Ensemble, and give that to stretto.to_torch"
        )


def _given_away(arrays: list[Array], caller: str) -> list[Any]:
    """Return results as tensors, once they are computed, and nothing reads what was borrowed."""
    wait_for_all(arrays)
    return [given(x, caller) for x in arrays]


def _seed(half: Half, arrays: list[Array]) -> Array:
    """Return a seed from PyTorch's generator, if it is needed."""
    host = _NO_SEED
    if half.draws(arrays, _array(host)):
        host = torch.randint(0, 2**32, (2,), dtype=torch.int64).numpy().astype(np.uint32)
    return _array(host)


def _array(host: np.ndarray) -> Array:
    return Array(host, array_type(host.shape, host.dtype))


class HostedPart(torch.nn.Module):
    """A module inside one that is computed here: it holds tensors, and a mode.

    Args:
        kind: the name of its class here.
        training: whether it is in train mode.
    """

    def __init__(self, kind: str, training: bool = True) -> None:
        super().__init__()
        self._kind = kind
        self.training = training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: the program is that of the whole module.

        Args:
            *args: whatever it is called with.
            **kwargs: the same, by name.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"this {self._kind} is a part of a module that is computed by Stretto, whose program "
            f"is one: call the whole, or give the part itself to stretto.to_torch"
        )

    def _get_name(self) -> str:
        return self._kind


class HostedModule(HostedPart):
    """A module that ``to_torch`` made.

    Args:
        hosting: what it is made of.
    """

    def __init__(self, hosting: Hosting) -> None:
        super().__init__(*hosting.parts[""])
        self._halves = Halves(hosting.source)
        for path, (kind, training) in hosting.parts.items():
            if path:
                self._hold(path, HostedPart(kind, training))
        for name, (role, array, persistent) in hosting.arrays.items():
            tensor = to_torch(np.asarray(array), f"to_torch: {name}")
            if role == "parameter":
                self._hold(name, torch.nn.Parameter(tensor))
            else:
                self._hold(name, tensor, persistent)
        for name, first in hosting.ties:
            self._hold(name, self._held(first))
        self._modes = tuple(hosting.parts)

    def _hold(self, name: str, what: Any, persistent: bool = True) -> None:
        """Register a module, parameter or buffer under a dotted name, unless it is there."""
        *path, attribute = name.split(".")
        part: Any = self
        for k, inner in enumerate(path):
            if inner not in part._modules:
                self._hold(".".join(path[: k + 1]), HostedPart("Module"))
            part = part._modules[inner]
        if any(attribute in held for held in (part._modules, part._parameters, part._buffers)):
            return  # by another name of the part
        if hasattr(part, attribute):
            raise ValueError(
                f"to_torch: torch.nn.Module has an attribute {attribute!r} of its own, so nothing "
                f"in {self._kind} can have the name {name}: rename it"
            )
        if isinstance(what, torch.nn.Module):
            part.add_module(attribute, what)
        elif isinstance(what, torch.nn.Parameter):
            part.register_parameter(attribute, what)
        else:
            part.register_buffer(attribute, what, persistent)

    def _held(self, name: str) -> Any:
        """Return the module, parameter or buffer of this dotted name."""
        return functools.reduce(getattr, name.split("."), self) if name else self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what the module, function or ensemble does.

        Args:
            *args: its arguments, with tensors in place of arrays, also in nested containers; all
                else is static.
            **kwargs: the same, by name.

        Returns:
            What it returns, with tensors in place of arrays.

        Raises:
            TypeError: a tensor is not dense and on the CPU, or would lose precision; there is an
                array instead of a tensor; or what is static is not hashable.
        """
        return self._run("forward", args, kwargs)

    def _run(self, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        name = self._kind
        leaves, structure = tree.flatten((args, kwargs))
        static = [
            None if isinstance(x, torch.Tensor) else self._static(x, i, args, kwargs)
            for i, x in enumerate(leaves)
        ]
        names = self._halves.source.names
        tensors = [self._held(n) for n in names]
        tensors += [x for x, fixed in zip(leaves, static, strict=True) if fixed is None]
        modes = tuple([self._held(path).training for path in self._modes])
        graded = torch.is_grad_enabled()
        wanted = tuple([graded and x.requires_grad for x in tensors])
        half = self._halves.of(Call(method, modes, structure, tuple(static)), wanted)
        result, updates = _Run(name, half, wanted, names)(tensors)
        with torch.no_grad():
            for n, value in updates.items():
                self._held(n).copy_(value)
        return result

    def _static(self, x: Any, place: int, args: Any, kwargs: Any) -> Static:
        """Return an argument that is not a tensor."""
        paths = (*tree.paths(args, "args"), *tree.paths(kwargs, "kwargs"))
        if isinstance(x, (Value, np.ndarray)):
            raise TypeError(
                f"{self._kind}: {paths[place]}: expected a tensor of PyTorch, got a "
                f"{type(x).__name__} of {x.dtype}: make it one, as by torch.from_numpy(np.array(x))"
            )
        try:
            return Static(x, self._kind, paths[place])
        except ValueError:
            raise TypeError(
                f"{self._kind}: {paths[place]}: expected a tensor, or something hashable, on which "
                f"what is compiled depends; got a {type(x).__name__}"
            ) from None


class HostedEnsemble(HostedModule):
    """An ensemble that ``to_torch`` made."""

    def each(self, *args: Any, **kwargs: Any) -> Any:
        """Run each member on its own arguments.

        Args:
            *args: trees of tensors of shape (members, ...): entry ``i`` goes to member ``i``.
            **kwargs: the same for all members.

        Returns:
            The results, stacked along a new axis 0: (members, ...).

        Raises:
            TypeError, ValueError: as for a call, or an argument has not an entry for each member.
        """
        return self._run("each", args, kwargs)
