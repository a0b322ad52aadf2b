"""Functions that are trees: ``Partial``, and the inverse of ``ravel``.

``ravel`` makes one vector of a tree of arrays, for algorithms that work on vectors, such as line
searches.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import is_complex, promote
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.comparison import full
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import split

if TYPE_CHECKING:
    from optree import PyTreeSpec

__all__ = ["Partial", "Unravel", "ravel"]

_FLOAT32 = np.dtype(np.float32)


@brief
@dataclasses.dataclass(frozen=True)
class Unravel:
    """The way back from a line of numbers to a tree; equal and hashable, so it can be static.

    Args:
        structure: the structure of the tree.
        shapes: the shapes of its leaves.
        dtypes: their dtypes.
        dtype: the dtype of the line.
    """

    structure: PyTreeSpec
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype

    def __call__(self, flat: ArrayLike) -> Tree:
        """Return the tree with these numbers.

        Raises ``ValueError`` if there are too many or too few. Where the leaves' dtypes differ,
        raises ``TypeError`` for any dtype but that of the line; otherwise the leaves take the dtype
        of ``flat``.
        """
        x = as_value(flat, "unravel", "flat")
        sizes = [math.prod(shape) for shape in self.shapes]
        if x.shape != (sum(sizes),):
            raise ValueError(f"unravel: expected {sum(sizes)} numbers of rank 1, got {x.type}")
        mixed = set(self.dtypes) != {self.dtype}
        if mixed and self.dtypes and x.dtype != self.dtype:
            raise TypeError(
                f"unravel: expected {self.dtype.name}, which the dtypes of the leaves combine "
                f"to; got {x.type}"
            )
        parts: Sequence[Any] = split(x, sizes) if sizes else []
        leaves = [reshape(part, shape) for part, shape in zip(parts, self.shapes, strict=True)]
        if mixed:
            leaves = [_to(leaf, dtype) for leaf, dtype in zip(leaves, self.dtypes, strict=True)]
        return tree.unflatten(self.structure, leaves)


def _to(x: Array, dtype: np.dtype) -> Array:
    return convert(real(x) if is_complex(x.dtype) and not is_complex(dtype) else x, dtype)


def ravel(pytree: Tree) -> tuple[Array, Unravel]:
    """Put the elements of all leaves in one vector.

    Args:
        pytree: a tree of arrays; leaves of several dtypes are promoted.

    Returns:
        The vector; and the function that turns such a vector back into a tree, whose leaves have
        their own dtypes.

    >>> import stretto.numpy as snp
    >>> from stretto.tree import ravel
    >>> flat, unravel = ravel({"w": snp.ones((2, 2)), "b": snp.zeros(1)})
    >>> flat
    Array([0., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(2 * flat)["b"].shape
    (1,)
    """
    leaves, structure = tree.flatten(pytree)
    values = [as_value(leaf, "ravel", "a leaf") for leaf in leaves]
    if not values:
        return full((0,), 0, _FLOAT32), Unravel(structure, (), (), _FLOAT32)
    dtype, _ = promote([(v.dtype, v.weak_type) for v in values], "ravel")
    lines = [convert(reshape(v, (v.size,)), dtype) for v in values]
    shapes, dtypes = (tuple(v.shape for v in values), tuple(v.dtype for v in values))
    return concatenate(lines), Unravel(structure, shapes, dtypes, dtype)


class Partial(functools.partial):
    """``functools.partial`` that is a tree of its arguments; the function is static.

    It therefore passes through transformations, and ``jit`` compiles again for another function.

    >>> import stretto as st
    >>> double = st.tree.Partial(lambda x, y: x * y, 2.0)
    >>> st.jit(lambda f, x: f(x))(double, 3.0)
    Array(6., dtype=float32, weak_type=True)
    """


tree.register_pytree_node(
    Partial,
    lambda x: ((x.args, x.keywords), x.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
