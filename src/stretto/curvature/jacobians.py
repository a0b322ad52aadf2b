"""Jacobians of each example by each weight, as sums of g aᵀ where weights are in products.

The taps of ``kron`` give g, the cotangents of an output at a use of a weight, and a, the other
factor there. So what is made of Jacobians, as J diag(scale) Jᵀ, needs none of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.graph import eval_shape
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, Tree
from stretto.curvature.batches import Batch
from stretto.curvature.curvature import ggn
from stretto.curvature.parts import Choice
from stretto.curvature.plan import Layout, Plan
from stretto.curvature.uses import Axis, Use, Uses, arranged


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Outer:
    """The Jacobian of a weight that is used in products: Σ over positions of g aᵀ.

    The weight is a matrix of rows and columns, or several, one for each group. Memory and time are
    those of g and a as long as there is one position; of several it is exact too, and takes as much
    as the weight times the outputs.
    """

    cotangents: Array
    """g, (examples, outputs, groups, positions, rows)."""
    inputs: Array
    """a, (examples, groups, positions, columns); of one group where all have the same."""
    layout: Layout = dataclasses.field(metadata={"static": True})

    def rotated(self, left: Array, right: Array) -> Outer:
        """Return the Jacobian in the bases of the columns of two matrices, (groups, n, n)."""
        return Outer(self.cotangents @ left, self.inputs @ right, self.layout)

    def whole(self) -> Array:
        """Return it as an array, (examples, outputs, groups, rows, columns)."""
        return snp.swapaxes(self.cotangents, -1, -2) @ self.inputs[:, None]

    def gram(self, scale: Array) -> Array:
        """Return J diag(scale) Jᵀ of each example, for scale (groups, rows, columns).

        Of one position it is Σ_o g_co g_do (scale a²)_o.
        """
        if self.inputs.shape[2] > 1:
            return gram(self.whole(), scale, False)
        weight = snp.square(self.inputs) @ snp.swapaxes(
            scale, -1, -2
        )  # (examples, groups, 1, rows)
        g = self.cotangents
        flat = g.reshape(*g.shape[:2], -1)
        return (g * weight[:, None]).reshape(flat.shape) @ snp.swapaxes(flat, 1, 2)


def gram(jacobian: Outer | Array, scale: Array, joint: bool) -> Array:
    """Return J diag(scale) Jᵀ by one weight, whose Jacobian is (examples, outputs, ...).

    ``scale`` is as what follows there. The result is (examples, outputs, outputs); with ``joint``
    (examples · outputs, examples · outputs).
    """
    if isinstance(jacobian, Outer) and not joint:
        return jacobian.gram(scale)
    whole = jacobian.whole() if isinstance(jacobian, Outer) else jacobian
    flat = whole.reshape(*((-1,) if joint else whole.shape[:2]), scale.size)
    return (flat * scale.reshape(-1)) @ snp.swapaxes(flat, -1, -2)


def numbers_of(jacobian: Tree) -> int:
    """Return how many numbers are made of the Jacobian of an example, whose types these are."""
    if isinstance(jacobian, Mapping):
        return sum([numbers_of(x) for x in jacobian.values()])
    if not isinstance(jacobian, Outer):
        return 2 * jacobian.size
    g, a = jacobian.cotangents, jacobian.inputs
    several = a.shape[2] > 1
    return 2 * g.size + a.size + several * math.prod(g.shape[:3]) * g.shape[4] * a.shape[3]


def jacobians(model: Tree, x: Tree, weights: Choice) -> dict[str, Outer | Array]:
    """Return the Jacobian of each example by each weight: (examples, outputs, *shape), or as taps.

    Args:
        model: as ``ggn`` takes it.
        x: inputs, (examples, ...).
        weights: which weights.

    Returns:
        By name: an ``Outer``; or the whole array, of a weight that is in no product, or whose
            positions are not those of its other factor, as of rows that are looked up.
    """
    curvature = ggn(model, x, "gaussian", weights=weights)  # of which the root is the identity
    plan = Plan(curvature)
    examples = curvature.examples
    run_alone = lambda c: plan.run(
        c, plan._taps(range(len(plan.listed))), {}, tree.map(lambda a: a[:1], c.x)
    )[1]
    types = eval_shape(run_alone, curvature)
    uses = {
        i: [(n, u) for n, u in enumerate(plan.listed) if u.weight == i] for i in plan.uses.found
    }
    whole = {i: "no product" for i, own in uses.items() if not _are_products(own, types)}
    plan.uses = Uses(plan.uses.found, {**plan.uses.unknown, **whole})
    numbers = snp.arange(examples, dtype=np.int32)
    here = snp.ones(examples, bool)
    taps, exact, seen = plan.cotangents(curvature, Batch(curvature.x, None, numbers, here))
    found: dict[str, Outer | Array] = {}
    for i, name in enumerate(curvature.names):
        if i in exact:
            found[name] = exact[i]
            continue
        g, a = zip(*[_at(u, taps[n], seen.get(n)) for n, u in uses[i]], strict=True)
        found[name] = Outer(snp.concatenate(g, 3), snp.concatenate(a, 2), plan.layouts[i])
    return found


def _at(use: Use, tap: Array, seen: Array | None) -> tuple[Array, Array]:
    """Return g and a at one use; where the weight is added, g of all positions together, and 1."""
    loops = [axis for _, axis in use.loops]
    g = vmap(vmap(lambda t: arranged(t, [*loops, *use.g_axes], "out")))(tap)
    if seen is None or use.a_axes is None:
        g = snp.sum(g, 3, keepdims=True)
        return g, snp.ones((len(g), 1, 1, 1), g.dtype)
    axes = [*loops, *use.a_axes]
    return g, vmap(lambda t: arranged(t, axes, "in"))(seen)


def _are_products(uses: Sequence[tuple[int, Use]], seen: Mapping[int, Any]) -> bool:
    """Say whether g and a have the same positions, in one order, at all uses of a weight."""
    if len({use.a_axes is None for _, use in uses}) > 1:
        return False
    for n, use in uses:
        if use.a_axes is None:
            continue
        loops = [axis for _, axis in use.loops]
        of_g = _positions(use.tap_shape, [*loops, *use.g_axes])
        of_a = _positions(seen[n].shape, [*loops, *use.a_axes])
        if of_g is None or of_g != of_a:
            return False
    return True


def _positions(shape: Sequence[int], axes: Sequence[Axis]) -> list[int] | None:
    """Return the sizes of the positions, in order; ``None`` where some repeat a weight."""
    parts: list[tuple[str, int, int]] = []
    for n, axis in zip(shape, axes, strict=True):
        parts.extend(axis or [("position", 0, n)])
    if any([role in ("repeated", "summed") for role, _, _ in parts]):
        return None
    return [n for role, _, n in parts if role == "position" and n > 1]
