"""Looking at what a function is traced to: its program, and the shapes of its results.

Layer 7 (api).
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto.api.arguments import LeafNames, as_values, name_of, values_of_tree, without_float0
from stretto.core import tree
from stretto.core.boundary import boundary, bounded
from stretto.core.program import Program
from stretto.core.recorder import record
from stretto.core.types import ArrayType, array_type, canonical_dtype
from stretto.transforms.simplify import drop_dead

__all__ = ["ShapeDtypeStruct", "eval_shape", "make_graph", "types_of"]


@dataclasses.dataclass(frozen=True)
class ShapeDtypeStruct:
    """The shape and dtype of an array, without its elements."""

    shape: tuple[int, ...]
    dtype: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name})"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))


def types_of(
    leaves: Sequence[Any], who: str, names: Callable[[], Sequence[str]]
) -> tuple[ArrayType, ...]:
    """The types of arguments, given as arrays or by ``ShapeDtypeStruct``."""
    given = [isinstance(x, ShapeDtypeStruct) for x in leaves]
    arrays = [x for x, g in zip(leaves, given, strict=True) if not g]
    values = iter(
        as_values(arrays, who, lambda: list(itertools.compress(names(), map(operator.not_, given))))
    )
    return tuple(
        array_type(x.shape, canonical_dtype(x.dtype)) if g else next(values).type
        for x, g in zip(leaves, given, strict=True)
    )


def _record_call(fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Program, Any, Any]:
    leaves, structure = tree.flatten((args, kwargs))

    def flat(*values: Any) -> Any:
        positional, named = tree.unflatten(structure, values)
        result = without_float0(fun(*positional, **named))
        return values_of_tree(result, who, "the result")

    who = name_of(fun)
    names = LeafNames(fun, args, kwargs)
    return record(flat, types_of(leaves, who, lambda: names), names, who)


def make_graph(fun: Callable[..., Any]) -> Callable[..., Program]:
    """A function of the same arguments that gives the typed program ``fun`` is traced to.

    Work that no result needs is left out, as it is when the program is compiled.

    >>> import stretto as st, stretto.numpy as snp
    >>> print(st.make_graph(lambda x: snp.sin(x) * 2)(1.0))
    { function(a:f32*[])
      b:f32*[] = sin a
      c:f32*[] = mul b 2.0
      return c }
    """

    @bounded
    def graph(*args: Any, **kwargs: Any) -> Program:
        return drop_dead(_record_call(fun, args, kwargs)[0])

    return graph


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results, without computing them: a tree of ``ShapeDtypeStruct``.

    Arguments may be arrays or ``ShapeDtypeStruct``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.eval_shape(lambda x: x @ x.T, snp.ones((2, 3)))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    with boundary:
        program, structure, _ = _record_call(fun, args, kwargs)
    return tree.unflatten(
        structure, [ShapeDtypeStruct(t.shape, t.dtype) for t in program.out_types]
    )
