"""``LinearisedEnsemble``: members drawn from a posterior of weights, each linear in its weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto import tree
from stretto._engine.api.autodiff.derivatives import linearize
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.curvature.parts import parts_of
from stretto.ensemble.ensemble import Ensemble

__all__ = ["LinearisedEnsemble"]


def of_model(model: Tree, f: Callable[..., Any], *states: Tree) -> Tree:
    """Return ``f(model, *states)``; of an ensemble that of each member, stacked.

    The states of an ensemble have an entry for each member along axis 0.
    """
    if isinstance(model, Ensemble):
        return model.vmap(f, in_axes=0)(*states)
    return f(model, *states)


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

    def __len__(self) -> int:
        leaf = next(iter(self.differences.values()))
        return int(np.prod(leaf.shape[: 1 + isinstance(self.model, Ensemble)]))

    def __call__(self, x: ArrayLike) -> Array:
        """Return what each member gives: (members, batch, ...)."""
        return _call(self, x)


@jit
def _call(members: LinearisedEnsemble, x: Tree) -> Tree:
    def of(model: Tree, differences: dict[str, Array]) -> Tree:
        apply, chosen, _ = parts_of(model, members.weights, "LinearisedEnsemble")
        middle, tangent = linearize(lambda weights: apply(weights, x), chosen)
        return vmap(lambda difference: middle + tangent(difference))(differences)

    out = of_model(members.model, of, members.differences)
    if not isinstance(members.model, Ensemble):
        return out
    return tree.map(lambda rows: rows.reshape(-1, *rows.shape[2:]), out)
