"""``LinearisedEnsemble``: members drawn from a posterior of weights, each linear in its weights."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import tree
from stretto._engine.api.autodiff.derivatives import linearize
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, Tree
from stretto.curvature.parts import parts_of
from stretto.ensemble.ensemble import Ensemble
from stretto.ensemble.groups import Ties, retied, ties_of

__all__ = ["LinearisedEnsemble"]


def of_model(model: Tree, ties: Ties, f: Callable[..., Any], *states: Tree) -> Tree:
    """Return ``f(model, *states)``; of an ensemble that of each member, stacked.

    The states of an ensemble have an entry for each member along axis 0. ``ties`` are those of a
    module, which has come through ``jit``, and so as if each place had an array of its own.
    """

    def of(model: Tree, *states: Tree) -> Tree:
        return f(_prepared(model, ties or ties_of(model)), *states)

    return model.vmap(of, in_axes=0)(*states) if isinstance(model, Ensemble) else of(model, *states)


def _prepared(model: Tree, ties: Ties) -> Tree:
    """Return a model of float32 at least; a tied module as a function of its parameters, each once.

    As a tree it would have an array at each place, and lose its ties wherever it is an argument of
    what is compiled.
    """
    model = retied(widened(model), ties)
    if not ties:
        return model
    parts = parts_of(model, caller="fit_laplace")

    def apply(params: dict[str, Array], *args: Tree) -> Array:
        return parts.apply(params, args)

    return apply, OrderedDict(parts.chosen)


def widened(root: Tree) -> Tree:
    """Return a tree whose floating-point arrays are of float32 at least; itself if they are.

    Curvature is sums over all examples, and is factored, which narrow types have no digits for.
    """

    def wide(x: Array) -> Array:
        narrow = x.dtype.itemsize < 4 and is_inexact(x.dtype)
        return x.astype(np.float32) if narrow else x

    return tree.map(wide, root)


@brief
@register_dataclass
@dataclasses.dataclass(frozen=True)
class LinearisedEnsemble:
    """Members f(x; θ*) + J(x) (θ − θ*), each with its own weights θ; made by ``Laplace.members``.

    Called as an ``Ensemble``, it gives (members, batch, outputs), so that all functions of
    ``stretto.ensemble`` apply. The same members answer every call.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.array([[-1.0], [0.0], [1.0]])
    >>> line = lambda w, x: x * w
    >>> laplace = st.ensemble.fit_laplace(
    ...     (line, snp.array(2.0)), (x, 2 * x), likelihood="gaussian", noise=1.0, structure="full"
    ... )
    >>> members = laplace.members(st.random.key(0), 5)
    >>> len(members), members(x).shape
    (5, (5, 3, 1))
    """

    model: Any
    """What is linearised: a module, a ``Member``, or an ``Ensemble`` of such."""
    differences: dict[str, Array]
    """θ − θ* of each weight, (draws, ...); of an ensemble (members, draws, ...)."""
    weights: Any = dataclasses.field(metadata={"static": True})
    """Which weights these are, as ``fit_laplace`` was told."""
    _ties: Ties = dataclasses.field(default=(), metadata={"static": True})

    def __len__(self) -> int:
        leaf = next(iter(self.differences.values()))
        return int(np.prod(leaf.shape[: 1 + isinstance(self.model, Ensemble)]))

    def __call__(self, x: Tree) -> Array:
        """Return what each member gives: (members, batch, ...)."""
        return _call(self, widened(tree.map(snp.asarray, x)))


@jit
def _call(members: LinearisedEnsemble, x: Tree) -> Tree:
    def of(model: Tree, differences: dict[str, Array]) -> Tree:
        apply, chosen, _ = parts_of(model, members.weights, "LinearisedEnsemble")
        middle, tangent = linearize(lambda weights: widened(apply(weights, x)), chosen)
        return vmap(lambda difference: middle + tangent(difference))(differences)

    out = of_model(members.model, members._ties, of, members.differences)
    if not isinstance(members.model, Ensemble):
        return out
    return tree.map(lambda rows: rows.reshape(-1, *rows.shape[2:]), out)
