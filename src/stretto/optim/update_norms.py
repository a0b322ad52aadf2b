"""Updates kept within bounds, and scaled by norms.

Updates kept within bounds: by value, by norm, by leaf, by unit.

With an axis of members, ``per_member(clip_by_global_norm(1.0))`` gives each member the norm of its
own updates; by value there is no difference.

Updates scaled by norms: of their parameters, and of themselves.

A norm is of one leaf; with an axis of members, use ``per_member``, so that each member has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import values_of_tree
from stretto._engine.core import tree
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.powers import root_of_squares
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Scalar,
    caller_of,
    stateless,
    transformation,
)
from stretto.optim.leaves import check, leafwise, need_params, squared, wide
from stretto.tree.sums import without_overflow

__all__ = [
    "adaptive_grad_clip",
    "clip",
    "clip_by_block_rms",
    "clip_by_global_norm",
    "global_norm",
    "scale_by_param_block_rms",
    "scale_by_trust_ratio",
]


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


@transformation
def clip(max_delta: Scalar) -> GradientTransformationExtraArgs:
    """Keep each element between −``max_delta`` and ``max_delta``.

    Args:
        max_delta: the largest size of an element.

    Raises:
        ValueError: ``max_delta`` is negative.

    >>> import stretto.numpy as snp
    >>> tx = clip(1.0)
    >>> tx.update({"w": snp.array([-3.0, 0.5])}, tx.init(None))[0]
    {'w': Array([-1. ,  0.5], dtype=float32)}
    """
    check("clip", least=0, max_delta=max_delta)
    bounded = lambda g: snp.minimum(snp.maximum(g, -max_delta), max_delta)
    return stateless(lambda updates, params: leafwise("clip", bounded, updates)[0])


@transformation
def clip_by_global_norm(max_norm: Scalar) -> GradientTransformationExtraArgs:
    """Multiply all updates by one factor, so that their norm is at most ``max_norm``.

    Args:
        max_norm: the largest Euclidean norm of all elements of all leaves.

    Raises:
        ValueError: ``max_norm`` is negative.

    Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks",
    2013, algorithm 1.

    >>> import stretto.numpy as snp
    >>> tx = clip_by_global_norm(1.0)
    >>> tx.update({"a": snp.array([3.0]), "b": snp.array([4.0])}, tx.init(None))[0]
    {'a': Array([0.6], dtype=float32), 'b': Array([0.8], dtype=float32)}
    """
    caller = "clip_by_global_norm"
    check(caller, least=0, max_norm=max_norm)

    def f(updates: Tree, params: Tree) -> Tree:
        root, unit = scaled_norm(caller, updates)
        within = root <= (max_norm if unit is None else max_norm * unit)
        factor = snp.where(within, 1, max_norm / snp.where(within, 1, root))
        if unit is None:
            return leafwise(caller, lambda g: g * factor, updates)[0]
        # In this order, for the product of both factors may be below what floats hold.
        shrunk = snp.where(within, 1, unit)
        return leafwise(caller, lambda g: g * shrunk * factor, updates)[0]

    return stateless(f)


@transformation
def clip_by_block_rms(threshold: Scalar) -> GradientTransformationExtraArgs:
    """Divide each leaf by max(1, its root mean square / ``threshold``).

    Args:
        threshold: the largest root mean square of a leaf.

    Raises:
        ValueError: ``threshold`` is not positive.

    Source: Shazeer and Stern, "Adafactor", 2018, section 6.

    >>> import stretto.numpy as snp
    >>> tx = clip_by_block_rms(1.0)
    >>> tx.update({"w": snp.array([2.0, -2.0])}, tx.init(None))[0]
    {'w': Array([ 1., -1.], dtype=float32)}
    """
    caller = caller_of("clip_by_block_rms")
    check(caller, above=0, threshold=threshold)

    def rule(g: Array) -> Array:
        return g / snp.maximum(1, norm_along(g, average=True) / threshold)

    return stateless(lambda updates, params: leafwise(caller, rule, updates)[0])


@transformation
def adaptive_grad_clip(
    clipping: Scalar, eps: Scalar = 1e-3, axis: int | Sequence[int] | None = None
) -> GradientTransformationExtraArgs:
    """Scale each unit's updates so that their norm is at most ``clipping`` times its parameters'.

    A unit is a whole vector; what lies along the first axis of an array with two or three, such as
    a matrix (inputs, outputs); what lies along all axes but the last of one with four or five, such
    as a kernel (height, width, inputs, outputs).

    Args:
        clipping: the largest ratio of norms.
        eps: the least norm of parameters; smaller ones count as this.
        axis: the axes within a unit; None as described. PyTorch's layers have outputs first: for
            them give the axes after the first.

    Raises:
        ValueError: ``update`` is called without parameters, a number is negative, or ``axis`` is
            None and a leaf has more than five axes.

    Source: Brock et al., "High-performance large-scale image recognition without normalization",
    2021, equation 3.

    >>> import stretto.numpy as snp
    >>> tx = adaptive_grad_clip(0.1)
    >>> params = {"w": snp.array([[3.0, 3.0], [4.0, 4.0]])}  # two columns of norm 5
    >>> updates, _ = tx.update({"w": snp.array([[1.0, 0.25], [0.0, 0.0]])}, (), params)
    >>> updates["w"][0]
    Array([0.5 , 0.25], dtype=float32)
    """
    caller = "adaptive_grad_clip"
    check(caller, least=0, clipping=clipping, eps=eps)

    def rule(g: Array, p: Array) -> Array:
        within = _axes_within(p.shape) if axis is None else axis
        of_g, of_p = (norm_along(x, within, keepdims=True) for x in (g, p))
        largest = clipping * snp.maximum(of_p, eps)
        factor = largest / snp.maximum(of_g, 1e-6)
        return g * snp.where(of_g < largest, 1, factor)

    def f(updates: Tree, params: Tree) -> Tree:
        need_params(params, caller)
        for path, x in zip(tree.paths(params, "params"), tree.leaves(params), strict=True):
            if axis is None and snp.ndim(x) > 5:
                raise ValueError(
                    f"{caller}: {path} has shape {snp.shape(x)}; give axis for more than 5 axes"
                )
        return leafwise(caller, rule, updates, params=params)[0]

    return stateless(f)


def _axes_within(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that are summed for the norm of a unit."""
    if len([n for n in shape if n != 1]) <= 1:
        return tuple(range(len(shape)))
    return (0,) if len(shape) <= 3 else tuple(range(len(shape) - 1))
