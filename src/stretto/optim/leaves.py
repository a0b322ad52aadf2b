"""What transformations share: rules applied leaf by leaf, fresh states, checks of arguments.

A rule is a function of one leaf of the updates and what belongs to it. It computes in at least
float32; its results are converted here to the dtypes that they must have, so that a state has the
same types at all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import as_values
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import (
    canonical_dtype,
    is_float0,
    is_inexact,
    kind_of,
    named_dtype,
    promote,
    real_dtype,
)
from stretto._engine.core.typing import Array, DTypeLike, Tree
from stretto._engine.ops.convert import convert
from stretto.numpy.arguments import weakly_inexact
from stretto.optim.base import Scalar


def columns(
    caller: str, trees: Mapping[str, Tree], *, shapes: bool = True
) -> tuple[list[list[Any]], Tree]:
    """The leaves of each tree, and the structure that all must share; leaves must agree in shape.

    With ``shapes=False`` shapes may differ. Raises ``ValueError`` with the path where they differ.
    """
    (name, first), *others = trees.items()
    leaves, spec = tree.flatten(first)
    flat = [leaves]
    for other_name, other in others:
        more, other_spec = tree.flatten(other)
        if other_spec != spec:
            raise ValueError(
                f"{caller}: {name} and {other_name} differ in structure; they part at "
                f"{tree.difference(first, other, name)}"
            )
        if shapes and [np.shape(x) for x in leaves] != [np.shape(x) for x in more]:
            path, a, b = next(
                (path, x, y)
                for path, x, y in zip(tree.paths(first), leaves, more, strict=True)
                if np.shape(x) != np.shape(y)
            )
            raise ValueError(
                f"{caller}: {name}{path} has shape {np.shape(a)}, but {other_name}{path} has shape "
                f"{np.shape(b)}"
            )
        flat.append(more)
    return flat, spec


def leafwise(
    caller: str,
    rule: Callable[..., Array | tuple[Array, ...]],
    updates: Tree,
    moments: Mapping[str, Tree] | None = None,
    params: Tree = None,
) -> list[Tree]:
    """Apply ``rule`` to each leaf of the updates with those of the moments, and of ``params``.

    The rule gives the new update, or a tuple of it and the new moments. Moments come back in the
    dtypes that they had, updates in the common dtype of updates and moments.

    Raises ``ValueError`` where the trees differ, ``TypeError`` for updates that are not floating.
    """
    moments = moments or {}
    trees = {"updates": updates} | {f"state.{name}": m for name, m in moments.items()}
    if params is not None:
        trees["params"] = params
    flat, spec = columns(caller, trees)
    _refuse_integers(caller, updates, flat[0])
    values = [
        as_values(column, caller, lambda root=root, x=x: tree.paths(x, root))
        for column, (root, x) in zip(flat, trees.items(), strict=True)
    ]
    results: list[list[Array]] = [[] for _ in range(1 + len(moments))]
    for group in zip(*values, strict=True):
        news = rule(*[wide(x) for x in group])
        before = group[: 1 + len(moments)]
        dtypes = [_common(before), *[x.dtype for x in before[1:]]]
        for result, new, dtype in zip(results, news if moments else (news,), dtypes, strict=True):
            result.append(convert(as_value(new, caller), dtype))
    return [tree.unflatten(spec, result) for result in results]


def _refuse_integers(caller: str, updates: Tree, leaves: list[Any]) -> None:
    for path, x in zip(tree.paths(updates, "updates"), leaves, strict=True):
        whole = isinstance(x, (bool, int)) or not is_inexact(getattr(x, "dtype", np.dtype(float)))
        if whole:
            dtype = getattr(x, "dtype", type(x).__name__)
            name = "float0, the gradient of an integer" if is_float0(x) else f"{dtype}"
            raise TypeError(
                f"{caller}: updates must be floating, but {path} is {name}; keep such leaves out "
                f"of the parameters, or leave them out with masked(..., mask)"
            )


def _common(values: tuple[Array, ...]) -> np.dtype:
    return promote([(x.dtype, False) for x in values])[0]


def wide(x: Array) -> Array:
    """The value in at least float32, and not weak."""
    narrow = kind_of(x.dtype) == "float" and x.dtype.itemsize < 4
    return convert(x, np.dtype(np.float32) if narrow else x.dtype)


def squared(x: Array) -> Array:
    """|x|², which is real."""
    if kind_of(x.dtype) == "complex":
        return snp.real(x) * snp.real(x) + snp.imag(x) * snp.imag(x)
    return x * x


def all_finite(x: Tree) -> Array:
    """Whether all elements of all leaves are finite: one boolean array."""
    finite = snp.array(True)
    for leaf in tree.leaves(x):
        finite = snp.logical_and(finite, snp.all(snp.isfinite(leaf)))
    return finite


def chosen(condition: Array, one: Tree, other: Tree) -> Tree:
    """One tree or the other, of equal structure."""
    return tree.map(lambda x, y: snp.where(condition, x, y), one, other)


# Fresh states


def filled(
    params: Tree, value: Scalar = 0.0, dtype: DTypeLike | None = None, *, real_only: bool = False
) -> Tree:
    """A tree like ``params``, each element ``value``: a state before the first update.

    ``dtype`` is for real floating leaves; ``real_only`` gives complex ones the dtype of their
    parts.
    """

    def one(x: Tree) -> Array:
        own = canonical_dtype(np.dtype(x.dtype)) if hasattr(x, "dtype") else as_value(x).dtype
        if real_only:
            own = real_dtype(own)
        chosen = own if dtype is None or kind_of(own) != "float" else dtype
        return snp.full(np.shape(x), value, chosen)

    return tree.map(one, params)


def first_count() -> Array:
    """Zero updates so far."""
    return snp.zeros((), snp.int32)


def safe_increment(count: Array) -> Array:
    """Add 1 to a count, unless it is the largest value of its dtype.

    Args:
        count: an array of integers or floats.

    Returns:
        An array of the same shape and dtype.

    >>> import stretto.numpy as snp
    >>> safe_increment(snp.array(2)), safe_increment(snp.array(127, snp.int8))
    (Array(3, dtype=int32), Array(127, dtype=int8))
    """
    value = as_value(count, "safe_increment", "count")
    whole = kind_of(value.dtype) in ("int", "uint")
    largest = (np.iinfo if whole else np.finfo)(value.dtype).max
    largest = snp.full((), largest, value.dtype)
    return snp.where(value < largest, value + snp.full((), 1, value.dtype), largest)


def running_mean(decay: Scalar, before: Array, new: Array) -> Array:
    """decay · before + (1 − decay) · new."""
    return before * decay + new * (1 - decay)


def log_decay(decay: Scalar) -> Array | float:
    """The logarithm, in double precision for a number: decayᵗ is the exponential of t times it."""
    if isinstance(decay, Value):
        return snp.log(decay)
    return math.log(decay) if decay > 0 else -math.inf


def unbias(decay: Scalar, count: Array) -> Array:
    """1 / (1 − decayᵗ): the factor that corrects a mean that began at zero.

    Source: Kingma and Ba, "Adam", 2015, section 3. The difference of numbers that are almost equal
    at first is computed without loss as −expm1(t log decay).
    """
    return -1 / snp.expm1(weakly_inexact(count) * log_decay(decay))


# Arguments


def need_params(params: Tree, caller: str) -> None:
    """Raise ``ValueError`` where ``update`` was called without parameters."""
    if params is None:
        raise ValueError(
            f"{caller}: its update needs the parameters; call update(updates, state, params)"
        )


def check(
    caller: str,
    *,
    least: float | None = None,
    below: float | None = None,
    above: float | None = None,
    schedules: bool = False,
    optional: bool = False,
    **arguments: object,
) -> None:
    """Refuse numbers out of range; arrays of rank 0 pass, and schedules and None where allowed.

    Raises ``ValueError`` for such numbers and for arrays with axes, ``TypeError`` for others.
    """
    expected = "a number, an array or a schedule" if schedules else "a number or an array"
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in (("at least", least), ("above", above), ("below", below))
        if bound is not None
    ]
    for name, x in arguments.items():
        if isinstance(x, (Value, np.ndarray)):
            if x.ndim:
                raise ValueError(
                    f"{caller}: {name} must be one number, got an array of shape {x.shape}; for "
                    f"one per member of a stacked ensemble use per_member(adam, {name}=...), with "
                    f"your optimizer in place of adam"
                )
            continue
        if (optional and x is None) or (schedules and callable(x)):
            continue
        if isinstance(x, bool) or not isinstance(x, (int, float, np.number)):
            raise TypeError(f"{caller}: {name} must be {expected}, got {x!r}")
        inside = (
            not math.isnan(x)
            and (least is None or x >= least)
            and (below is None or x < below)
            and (above is None or x > above)
        )
        if not inside:
            raise ValueError(f"{caller}: {name} must be {' and '.join(bounds)}, got {x!r}")


def check_dtype(caller: str, **dtypes: DTypeLike | None) -> None:
    """Raise ``TypeError`` for dtypes of moments that are not floating; None passes."""
    for name, dtype in dtypes.items():
        if dtype is None:
            continue
        try:
            is_floating = kind_of(named_dtype(dtype)) == "float"
        except TypeError:
            is_floating = False
        if not is_floating:
            raise TypeError(f"{caller}: {name} must be a floating dtype, got {dtype!r}")
