"""Updates scaled by norms: of their parameters, and of themselves.

A norm is of one leaf; with an axis of members, use ``per_member``, so that each member has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import values_of_tree
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.powers import root_of_squares
from stretto.optim.base import GradientTransformationExtraArgs, Scalar, stateless, transformation
from stretto.optim.leaves import check, leafwise, need_params, squared, wide
from stretto.optim.naming import caller_of
from stretto.tree.sums import without_overflow

__all__ = ["global_norm", "scale_by_param_block_rms", "scale_by_trust_ratio"]


def global_norm(updates: Tree) -> Array:
    """Return the Euclidean norm of all elements of all leaves.

    Args:
        updates: a tree of arrays.

    Returns:
        An array of rank 0, of at least float32; 0 without leaves. At 0 its derivative is 0.

    As ``stretto.tree.norm``, which needs a leaf.

    >>> import stretto.numpy as snp
    >>> global_norm({"a": snp.array([3.0]), "b": snp.array([4.0])})
    Array(5., dtype=float32)
    """
    return norm_of("global_norm", updates)


def norm_of(caller: str, updates: Tree) -> Array:
    """``global_norm``, for a caller whose name its messages begin with."""
    root, unit = scaled_norm(caller, updates)
    return root if unit is None else root / unit


def scaled_norm(caller: str, updates: Tree) -> tuple[Array, Array | None]:
    """The norm in a unit, and the unit, which is 1 unless the squares overflow; None is 1, too."""
    leaves = [wide(x) for x in values_of_tree(updates, caller, "updates")[0]]

    def squares(unit: Array | None) -> Array:
        scaled = leaves if unit is None else [x * unit for x in leaves]
        return sum([snp.sum(squared(x)) for x in scaled], snp.zeros(()))

    total, unit = without_overflow(squares)
    return root_of_squares(total), unit


def norm_along(
    x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False, average: bool = False
) -> Array:
    """The norm of a leaf over axes, or the root mean square; its slope at 0 is 0.

    Over some of the axes, they stay: ``keepdims``.
    """
    add_up = snp.mean if average else snp.sum

    def squares(unit: Array | None) -> Array:
        scaled = x if unit is None else wide(x) * unit
        return add_up(squared(scaled), axis=axis, keepdims=keepdims)

    total, unit = without_overflow(squares)
    root = root_of_squares(total)
    return root if unit is None else root / unit


@transformation
def scale_by_trust_ratio(
    min_norm: Scalar = 0.0, trust_coefficient: Scalar = 1.0, eps: Scalar = 0.0
) -> GradientTransformationExtraArgs:
    """Multiply each leaf by ``trust_coefficient`` · ‖p‖ / (‖g‖ + eps), or by 1 where a norm is 0.

    Args:
        min_norm: the least norm; smaller ones count as this.
        trust_coefficient: a factor of the ratio.
        eps: added to the norm of the update.

    Raises:
        ValueError: ``update`` is called without parameters, or a number is negative.

    Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks" (LARS), 2017;
    You et al., "Large batch optimization for deep learning" (LAMB), 2020.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_trust_ratio()
    >>> params = {"w": snp.array([3.0, 4.0])}
    >>> tx.update({"w": snp.array([0.0, 0.5])}, tx.init(params), params)[0]
    {'w': Array([0., 5.], dtype=float32)}
    """
    caller = caller_of("scale_by_trust_ratio")
    check(caller, least=0, min_norm=min_norm, trust_coefficient=trust_coefficient, eps=eps)

    def rule(g: Array, p: Array) -> Array:
        of_p, of_g = (snp.maximum(norm_along(x), min_norm) for x in (p, g))
        zero = (of_p == 0) | (of_g == 0)
        ratio = trust_coefficient * of_p / snp.where(zero, 1, of_g + eps)
        return g * snp.where(zero, 1, ratio)

    def f(updates: Tree, params: Tree) -> Tree:
        need_params(params, caller)
        return leafwise(caller, rule, updates, params=params)[0]

    return stateless(f)


@transformation
def scale_by_param_block_rms(min_scale: Scalar = 1e-3) -> GradientTransformationExtraArgs:
    """Multiply each leaf by the root mean square of its parameter.

    Args:
        min_scale: the least factor.

    Raises:
        ValueError: ``update`` is called without parameters, or ``min_scale`` is negative.

    Source: Shazeer and Stern, "Adafactor", 2018, section 8.

    >>> import stretto.numpy as snp
    >>> tx = scale_by_param_block_rms()
    >>> params = {"w": snp.array([2.0, 2.0])}
    >>> tx.update({"w": snp.ones(2)}, tx.init(params), params)[0]
    {'w': Array([2., 2.], dtype=float32)}
    """
    caller = caller_of("scale_by_param_block_rms")
    check(caller, least=0, min_scale=min_scale)

    def f(updates: Tree, params: Tree) -> Tree:
        need_params(params, caller)
        scaled = lambda g, p: g * snp.maximum(norm_along(p, average=True), min_scale)
        return leafwise(caller, scaled, updates, params=params)[0]

    return stateless(f)
