"""Distances and similarities of vectors, and losses of them.

Names, arguments and defaults are those of PyTorch's ``torch.nn.functional``, without the deprecated
``size_average`` and ``reduce``. A norm's derivative at 0 is 0.
"""

from __future__ import annotations

import stretto.numpy as snp
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import canonical_axis
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import positive_part, reduced
from stretto.numpy.linalg.norms import vector_norm

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "pairwise_distance",
    "triplet_margin_loss",
]


@rounded_once
def pairwise_distance(
    x1: ArrayLike, x2: ArrayLike, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Array:
    """Take the p-norm of ``x1 - x2 + eps`` along the last axis.

    Args:
        x1: vectors along the last axis.
        x2: vectors along the last axis; the others broadcast.
        p: the norm, not negative.
        eps: what is added to differences.
        keepdim: whether the last axis stays, with size 1.

    Returns:
        The distances.

    Raises:
        ValueError: ``p`` is negative, there is no axis, or shapes do not broadcast.

    As PyTorch's ``nn.functional.pairwise_distance``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.zeros((1, 2))
    >>> st.nn.functional.pairwise_distance(x, y).round(3)
    Array([5.], dtype=float32)
    """
    caller = "pairwise_distance"
    x, y = as_float(x1, caller, "x1"), as_float(x2, caller, "x2")
    return _distance(caller, x, y, p, eps, keepdim)


def _distance(
    caller: str, x: Array, y: Array, p: float, eps: float, keepdim: bool = False
) -> Array:
    """The p-norm of ``x - y + eps`` along the last axis."""
    if p < 0:
        raise ValueError(f"{caller}: p must not be negative, got {p!r}")
    shape = broadcast_shapes(caller, x.shape, y.shape)
    if not shape:
        raise ValueError(
            f"{caller}: expected vectors along the last axis, got {x.type} and {y.type}"
        )
    difference = of_rank(x, len(shape)) - of_rank(y, len(shape)) + eps
    return vector_norm(difference, axis=-1, keepdims=keepdim, ord=p)


@rounded_once
def cosine_similarity(x1: ArrayLike, x2: ArrayLike, dim: int = 1, eps: float = 1e-8) -> Array:
    """Take the cosine of the angle between vectors: their product, divided by both norms.

    Args:
        x1: vectors along ``dim``.
        x2: vectors along ``dim``; both broadcast.
        dim: the axis, of the shape to which they broadcast.
        eps: the least norm.

    Returns:
        The cosines, without the axis ``dim``.

    Raises:
        ValueError: ``dim`` is out of bounds, or shapes do not broadcast.

    As PyTorch's ``nn.functional.cosine_similarity``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.array([[1.0, 0.0]])
    >>> st.nn.functional.cosine_similarity(x, y).round(3)
    Array([0.6], dtype=float32)
    """
    caller = "cosine_similarity"
    x, y = as_float(x1, caller, "x1"), as_float(x2, caller, "x2")
    shape = broadcast_shapes(caller, x.shape, y.shape)
    axis = canonical_axis(dim, len(shape), caller)
    x, y = snp.broadcast_to(x, shape), snp.broadcast_to(y, shape)
    # Only x is divided before the product, which keeps it finite where the norms overflow.
    x = x / snp.maximum(vector_norm(x, axis=axis, keepdims=True), eps)
    return snp.sum(x * y, axis) / snp.maximum(vector_norm(y, axis=axis), eps)


_SMALLEST_SQUARE = 1e-12


@rounded_once
def cosine_embedding_loss(
    input1: ArrayLike,
    input2: ArrayLike,
    target: ArrayLike,
    margin: float = 0.0,
    *,
    reduction: str = "mean",
) -> Array:
    """Take ``1 - cos`` of vectors whose target is 1, and ``max(0, cos - margin)`` where it is -1.

    Args:
        input1: vectors (N, D) or (D,).
        input2: vectors of the same shape.
        target: 1 or -1, (N,) or ().
        margin: the cosine that costs nothing where the target is -1.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Returns:
        A scalar, or each loss where ``reduction`` is ``"none"``.

    Raises:
        ValueError: shapes do not fit, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.cosine_embedding_loss``.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, y = snp.array([[3.0, 4.0]]), snp.array([[1.0, 0.0]])
    >>> st.nn.functional.cosine_embedding_loss(x, y, snp.array([1])).round(3)
    Array(0.4, dtype=float32)
    """
    caller = "cosine_embedding_loss"
    x, y = as_float(input1, caller, "input1"), as_float(input2, caller, "input2")
    t = as_float(target, caller, "target")
    if x.shape != y.shape or x.ndim not in (1, 2) or t.shape != x.shape[:-1]:
        raise ValueError(
            f"{caller}: expected two inputs (N, D) with a target (N,), or (D,) with a target "
            "(); got "
            f"{x.type} and {y.type} with {t.type}"
        )
    squares = [snp.sum(snp.square(v), -1) + _SMALLEST_SQUARE for v in (x, y)]
    cos = snp.sum(x * y, -1) / snp.sqrt(squares[0] * squares[1])
    together = snp.where(snp.equal(t, 1), 1 - cos, 0.0)
    apart = snp.where(snp.equal(t, -1), positive_part(cos - margin), 0.0)
    return reduced(together + apart, reduction, caller)


@rounded_once
def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Array:
    """Take ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, d a p-norm's distance.

    Args:
        anchor: vectors along the last axis; the others broadcast.
        positive: vectors to be near.
        negative: vectors to be far.
        margin: the margin.
        p: the norm, not negative.
        eps: what is added to differences.
        swap: whether the negative's distance is the smaller of those from anchor and positive.
        reduction: ``"none"`` for each loss, ``"mean"`` or ``"sum"``.

    Returns:
        A scalar, or each loss where ``reduction`` is ``"none"``.

    Raises:
        ValueError: ``p`` is negative, shapes do not broadcast, or ``reduction`` is unknown.

    As PyTorch's ``nn.functional.triplet_margin_loss``. Source: Balntas et al., Learning Shallow
    Convolutional Feature Descriptors with Triplet Losses, 2016.

    >>> import stretto as st, stretto.numpy as snp
    >>> a, p, n = snp.zeros((1, 2)), snp.array([[3.0, 4.0]]), snp.array([[0.0, 2.0]])
    >>> st.nn.functional.triplet_margin_loss(a, p, n).round(3)
    Array(4., dtype=float32)
    """
    caller = "triplet_margin_loss"
    x, y, z = (
        as_float(anchor, caller, "anchor"),
        as_float(positive, caller, "positive"),
        as_float(negative, caller, "negative"),
    )
    near, far = _distance(caller, x, y, p, eps), _distance(caller, x, z, p, eps)
    if swap:
        far = snp.minimum(far, _distance(caller, y, z, p, eps))
    return reduced(positive_part(near - far + margin), reduction, caller)
