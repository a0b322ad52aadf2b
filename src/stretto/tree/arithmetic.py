"""Trees as vectors: ``ravel``, products, norms, the arc between two; and other dtypes for leaves.

``ravel`` makes one vector of a tree of arrays, for algorithms that work on vectors, such as line
searches; its inverse is a tree, as ``Partial`` is, a function that holds arrays. Trees are reduced
here too, mapped with their paths, and turned inside out.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core import tree as _tree
from stretto._engine.core.interpreter import as_value, constant, state
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import flatten_with_path, leaves, map, unflatten
from stretto._engine.core.types import as_dtype, inexact_dtype, is_complex, is_inexact, promote
from stretto._engine.core.typing import ArrayLike, DTypeLike, Tree
from stretto._engine.ops.arithmetic import absolute, add, divide, multiply, subtract
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.comparison import full, gt, where
from stretto._engine.ops.complex_parts import conj, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import root_of_squares, sqrt
from stretto._engine.ops.inverse_trigonometric import acos
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import concatenate, split
from stretto._engine.ops.trigonometric import sin
from stretto._engine.xla.array import Array
from stretto.tree.members import Alike
from stretto.tree.sums import of_column, widened, without_overflow

if TYPE_CHECKING:
    import optree
    from optree import PyTreeSpec

__all__ = ["Partial", "Unravel", "all", "broadcast", "cast", "dot", "leaves_with_path",
           "map_with_path", "norm", "ravel", "reduce", "reduce_associative", "slerp", "static",
           "transpose"]  # fmt: skip

T = TypeVar("T")

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


_ROW = 1 << 12  # elements: few enough to be added up in 32 bits
_BLOCK = _ROW << 7  # elements: of low precision, widened at a time


def _product(x: Array, y: Array) -> Array:
    """Return the sum of the products of the elements of two leaves, the first conjugated."""
    if (
        state.interpreter is state.eager
        and x.__class__ is Array
        and y.__class__ is Array
        and x.type.kind == "float"
        and x.dtype == y.dtype
        and not (x.weak_type or y.weak_type)
    ):
        one, other = x.to_host().reshape(-1), y.to_host().reshape(-1)
        wide = widened(constant(np.zeros((), x.dtype))).dtype
        total = 0.0
        with np.errstate(all="ignore"):
            for i in range(0, one.size, _BLOCK):
                a, b = (part[i : i + _BLOCK].astype(wide, copy=False) for part in (one, other))
                rows = a.size // _ROW * _ROW
                within = np.vecdot(a[:rows].reshape(-1, _ROW), b[:rows].reshape(-1, _ROW))
                total += float(within.sum(dtype=np.float64) + np.vecdot(a[rows:], b[rows:]))
            return constant(np.asarray(total, wide))
    x, y = (widened(convert(z, inexact_dtype(z.dtype))) for z in (x, y))
    return reduce_sum(multiply(conj(x) if is_complex(x.dtype) else x, y), tuple(range(x.ndim)))


def _total(parts: Sequence[Any], caller: str) -> Array:
    if not parts:
        raise ValueError(f"{caller}: expected a tree with arrays, got one without leaves")
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part)
    return total


def dot(x: Tree, y: Tree) -> Array:
    """Sum ``x * y`` over all elements of all leaves.

    Args:
        x: a tree of arrays; complex leaves are conjugated.
        y: a tree like it.

    Returns:
        One scalar, of at least float32.

    Raises:
        ValueError: structures or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> dot({"a": snp.array([1.0, 2.0]), "b": 3.0}, {"a": snp.array([4.0, 5.0]), "b": 6.0})
    Array(32., dtype=float32)
    """
    alike = Alike("dot")
    ours, theirs = alike.row(x, 0), alike.row(y, 1)
    return _total([_product(a, b) for a, b in zip(ours, theirs, strict=True)], "dot")


def norm(tree: Tree) -> Array:
    """Return the Euclidean norm of all elements of all leaves.

    Args:
        tree: a tree of arrays.

    Returns:
        One scalar, of at least float32. Its derivative at 0 is 0.

    Raises:
        ValueError: the tree has no leaves.

    >>> import stretto.numpy as snp
    >>> norm({"a": snp.array([3.0]), "b": snp.array([4.0])})
    Array(5., dtype=float32)
    """
    values = [as_value(x, "norm", "a leaf") for x in leaves(tree)]

    def squares(unit: Array | None) -> Array:
        scaled = values if unit is None else [multiply(widened(x), unit) for x in values]
        return _total([_square(x) for x in scaled], "norm")

    total, unit = without_overflow(squares)
    root = root_of_squares(total)
    return root if unit is None else divide(root, unit)


def _square(x: Array) -> Array:
    """Return the sum of the squared magnitudes of the elements."""
    x = absolute(x) if is_complex(x.dtype) else x
    return _product(x, x)


def slerp(start: T, end: T, weight: ArrayLike, *, by_leaf: bool = False) -> T:
    """Interpolate along the arc between two trees: spherical linear interpolation.

    ``(sin((1 - t) θ) start + sin(t θ) end) / sin θ``, with θ the angle between the two trees as
    vectors of all their elements that are floats. Trees of one norm stay on its sphere. Where there
    is no arc, because directions agree, or are opposite, to the accuracy of float32, or a norm is
    zero, it is ``lerp``.

    Args:
        start: a tree of arrays.
        end: a tree like it.
        weight: a scalar t, 0 for ``start``, 1 for ``end``.
        by_leaf: take the angle of each two leaves instead.

    Returns:
        A tree of arrays; leaves of low precision are computed in float32. Integers and booleans are
            those of ``lerp``.

    Raises:
        ValueError: structures or shapes differ, with the path; or ``weight`` is not a scalar.

    Source: Shoemake, "Animating rotation with quaternion curves", 1985.

    >>> import stretto.numpy as snp
    >>> slerp({"w": snp.array([1.0, 0.0])}, {"w": snp.array([0.0, 1.0])}, 0.5)
    {'w': Array([0.70710677, 0.70710677], dtype=float32)}
    """
    alike = Alike("slerp")
    ours, theirs = alike.row(start, 0), alike.row(end, 1)
    t = as_value(weight, "slerp", "weight")
    if t.ndim:
        raise ValueError(f"slerp: weight must be a scalar; got {t.type}")
    line: list[Any] = [subtract(1.0, t), t]
    # A counter has no direction, and one of 10,000 would be nearly all of the norm.
    on_arc = [is_inexact(a.dtype) or is_inexact(b.dtype) for a, b in zip(ours, theirs, strict=True)]
    parts = [
        (_square(a), _square(b), _real(_product(a, b))) if arc else None
        for a, b, arc in zip(ours, theirs, on_arc, strict=True)
    ]
    angles = [p for p in parts if p is not None]
    if by_leaf or not angles:
        weights = [line if p is None else _arc_weights(*p, t) for p in parts]
    else:
        aa, bb, ab = (_total(column, "slerp") for column in zip(*angles, strict=True))
        arc = _arc_weights(aa, bb, ab, t)
        weights = [line if p is None else arc for p in parts]
    pairs = zip(ours, theirs, weights, strict=True)
    return unflatten(alike.structure, [of_column([a, b], w) for a, b, w in pairs])


def _real(x: Array) -> Array:
    return real(x) if is_complex(x.dtype) else x


_STRAIGHT = 1 - 1e-6  # |cos θ| beyond which the arc is a line: its weights differ by θ² / 6


def _arc_weights(aa: Array, bb: Array, ab: Array, t: Array) -> list[Any]:
    """Return the weights of the two ends, from their squared norms and product."""
    has_angle = gt(aa, 0) & gt(bb, 0)
    norms = multiply(*[sqrt(where(has_angle, square, 1.0)) for square in (aa, bb)])
    cosine = divide(ab, norms)
    is_arc = has_angle & gt(_STRAIGHT, absolute(cosine))
    angle = acos(where(is_arc, cosine, 0.0))
    rest = subtract(1.0, t)
    # sin((1 - t) θ) / sin θ and sin(t θ) / sin θ, or 1 - t and t
    return [where(is_arc, divide(sin(multiply(w, angle)), sin(angle)), w) for w in (rest, t)]


def cast(tree: T, dtype: DTypeLike) -> T:
    """Convert the floating leaves to another dtype; integers and booleans stay.

    Args:
        tree: a tree of arrays.
        dtype: a floating dtype.

    Returns:
        A tree of arrays.

    >>> import stretto.numpy as snp
    >>> cast({"n": snp.array([1]), "w": snp.ones(1)}, snp.bfloat16)
    {'n': Array([1], dtype=int32), 'w': Array([1], dtype=bfloat16)}
    """
    target = as_dtype(dtype)

    def one(leaf: ArrayLike) -> Array:
        x = as_value(leaf, "cast", "a leaf")
        return convert(x, target) if is_inexact(x.dtype) else x

    return map(one, tree)


_NOTHING = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Tree,
    initializer: Tree = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Tree:
    """Combine all leaves, from the left.

    Args:
        function: ``function(result so far, leaf)``.
        tree: the tree.
        initializer: what to begin with; by default the first leaf.
        is_leaf: which nodes to take for leaves.

    Returns:
        The result.

    Raises:
        TypeError: the tree has no leaves, and there is no ``initializer``.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    initial = () if initializer is _NOTHING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *initial)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Tree,
    *,
    identity: Tree = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Tree:
    """Combine all leaves, by halves, so that no leaf goes through many operations.

    Args:
        operation: associative, of two leaves.
        tree: the tree.
        identity: the result where there are no leaves.
        is_leaf: which nodes to take for leaves.

    Returns:
        The result.

    Raises:
        TypeError: the tree has no leaves, and there is no ``identity``.

    >>> reduce_associative(lambda x, y: (x, y), [1, 2, 3, 4, 5])
    ((1, 2), (3, (4, 5)))
    """

    def combine(parts: list[Any]) -> Tree:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return operation(combine(parts[:half]), combine(parts[half:]))

    flat = leaves(tree, is_leaf)
    if not flat and identity is _NOTHING:
        raise TypeError("reduce_associative: the tree has no leaves; give identity=")
    return combine(flat) if flat else identity


def all(tree: Tree, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Say whether every leaf is true.

    Args:
        tree: the tree.
        is_leaf: which nodes to take for leaves.

    Returns:
        Whether it is; True without leaves.

    >>> all([True, {"a": 1}])
    True
    """
    return not [leaf for leaf in leaves(tree, is_leaf) if not leaf]


def leaves_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """List the leaves, each with the keys that lead to it.

    Args:
        tree: the tree.
        is_leaf: which nodes to take for leaves.
        is_leaf_takes_path: call ``is_leaf(path, node)``.

    Returns:
        Pairs of a path, which is a tuple of keys, and a leaf.

    >>> leaves_with_path({"w": [1]})
    [((DictKey(key='w'), SequenceKey(idx=0)), 1)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Tree,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Tree:
    """Apply ``f(path, leaf, ...)`` to each leaf; the path is the tuple of keys that lead to it.

    Args:
        f: the function.
        tree: the tree.
        *rest: further trees, of which ``tree`` is a prefix.
        is_leaf: which nodes to take for leaves.
        is_leaf_takes_path: call ``is_leaf(path, node)``.

    Returns:
        A tree of the results.

    >>> from stretto._engine.core.nodes import keystr
    >>> map_with_path(lambda path, x: (keystr(path), x), {"w": [1]})
    {'w': [("['w'][0]", 1)]}
    """
    pairs, spec = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_tree.prefix_subtrees(spec, tree, other, i + 1) for i, other in enumerate(rest)]
    flat = [f(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)]
    return unflatten(spec, flat)


def broadcast(
    prefix_tree: Tree, full_tree: Tree, is_leaf: Callable[[Any], bool] | None = None
) -> Tree:
    """Make a tree like ``full_tree``, each leaf that of ``prefix_tree`` above it.

    Args:
        prefix_tree: a tree that ends where, or before, ``full_tree`` does.
        full_tree: the tree.
        is_leaf: which nodes of ``prefix_tree`` to take for leaves.

    Returns:
        The new tree.

    Raises:
        ValueError: the one is not a prefix of the other, with the path.

    >>> broadcast({"a": 1, "b": 2}, {"a": [5, 6], "b": (7,)})
    {'a': [1, 1], 'b': (2,)}
    """

    def fill(leaf: Tree, part: Tree) -> Tree:
        return _tree.map(lambda _: leaf, part, is_leaf=is_leaf)

    return _tree.map(fill, prefix_tree, full_tree, is_leaf=is_leaf)


def static(**kwargs: Any) -> Any:  # noqa: ANN401 (a value of the field's type, to checkers)
    """Make a field of a dataclass static data, for ``register_dataclass``.

    Args:
        **kwargs: as for ``dataclasses.field``.

    Returns:
        The field.

    >>> import stretto as st
    >>> @st.tree.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = st.tree.static(default="layer")
    >>> st.tree.leaves(Layer(1.0))
    [1.0]
    """
    return dataclasses.field(metadata={**kwargs.pop("metadata", {}), "static": True}, **kwargs)


def transpose(
    outer_treedef: optree.PyTreeSpec,
    inner_treedef: optree.PyTreeSpec | None,
    pytree_to_transpose: Tree,
) -> Tree:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: the structure of the whole.
        inner_treedef: that of the trees in it; ``None`` takes that of the first.
        pytree_to_transpose: the tree.

    Returns:
        A tree of structure ``inner_treedef`` of trees of structure ``outer_treedef``.

    >>> from stretto._engine.core.tree import structure
    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    parts = outer_treedef.flatten_up_to(pytree_to_transpose)
    inner = _tree.structure(parts[0]) if inner_treedef is None else inner_treedef
    rows = [inner.flatten_up_to(part) for part in parts]
    return unflatten(
        inner, [unflatten(outer_treedef, column) for column in zip(*rows, strict=True)]
    )
