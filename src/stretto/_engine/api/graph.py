"""Look at what a function is traced to: its program, and the shapes of its results.

The way to see what the transformations do: ``docs/programs.md`` does it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from stretto._engine.api import argument_leaves
from stretto._engine.api.jit.signature import NO_ARGUMENTS, ArgumentSet, argument_set, rejoin
from stretto._engine.api.varying_sizes.sizes import equal_lengths, share_lengths
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cells import giving
from stretto._engine.core.config import over_axis
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Value, as_value, gives_array
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import live
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype
from stretto._engine.higher_order.refs import Parts, Ref, read_refs
from stretto._engine.passes.simplify import simplify as _simplify

if TYPE_CHECKING:
    from stretto._engine.core.typing import ArrayLike


@dataclasses.dataclass(frozen=True)
class ShapeDtypeStruct:
    """The shape and dtype of an array, without its elements.

    Args:
        shape: the sizes of the axes.
        dtype: the dtype, or its name; that of typed keys stays as it is.
        weak_type: whether the dtype is that of a Python number, and gives way in promotion.
        sharding: where it is; None for nowhere in particular.

    Raises:
        TypeError: a size is not an integer, or the dtype is none.
        ValueError: ``dtype`` is None.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool = dataclasses.field(default=False, kw_only=True)
    sharding: Any = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be given, got None")
        object.__setattr__(
            self, "shape", tuple([n if is_size(n) else operator.index(n) for n in self.shape])
        )
        if not hasattr(self.dtype, "extended_kind"):
            object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = f", sharding={self.sharding!r}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{where})"

    @property
    def _sharding(self) -> Any:
        return self.sharding

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct of rank 0")
        return self.shape[0]

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Describe an array.

        Args:
            x: the array, or a number, or what has a shape and a dtype.

        Returns:
            Its description, with its sharding if it is over several devices.

        Raises:
            TypeError: ``x`` is no array.

        >>> import numpy as np
        >>> ShapeDtypeStruct.like(np.zeros((2, 3), "float32"))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        described = hasattr(x, "shape") and hasattr(x, "dtype")
        of = x if described else as_value(x, "ShapeDtypeStruct.like", "x").type
        where = getattr(x, "sharding", None)
        where = where if getattr(where, "num_devices", 1) > 1 else None
        weak = bool(getattr(of, "weak_type", False))
        return cls(of.shape, of.dtype, weak_type=weak, sharding=where)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Copy it, with some fields replaced.

        Args:
            **changes: new values of ``shape``, ``dtype`` and ``weak_type``.

        Returns:
            The changed copy.

        Raises:
            TypeError: there is no field of a name.

        >>> ShapeDtypeStruct((2, 3), "float32").update(shape=(4,))
        ShapeDtypeStruct(shape=(4,), dtype=float32)
        """
        return dataclasses.replace(self, **changes)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


def _only_described(x: Any) -> bool:
    """Say if it has the shape and dtype of an array, but no elements."""
    if isinstance(x, (Value, np.ndarray, np.generic)) or x.__class__ in (bool, int, float, complex):
        return False
    has_type = hasattr(x, "shape") and hasattr(x, "dtype")
    return has_type and not (hasattr(x, "__array__") or gives_array(x))


def struct_of(type: ArrayType) -> ShapeDtypeStruct:
    """Return the shape and dtype of a type."""
    return ShapeDtypeStruct(type.shape, type.dtype, weak_type=type.weak_type)


def types_of(
    leaves: Sequence[Any], caller: str, names: Callable[[], Sequence[str]]
) -> tuple[ArrayType, ...]:
    """Give the types of arguments: arrays, or ``ShapeDtypeStruct`` and other things with a type."""
    described = [_only_described(x) for x in leaves]
    arrays = [x for x, d in zip(leaves, described, strict=True) if not d]
    values = iter(
        argument_leaves.as_values(
            arrays, caller, lambda: list(itertools.compress(names(), map(operator.not_, described)))
        )
    )
    return tuple(
        array_type(
            tuple(x.shape), canonical_dtype(np.dtype(x.dtype)), bool(getattr(x, "weak_type", False))
        )
        if d
        else next(values).type
        for x, d in zip(leaves, described, strict=True)
    )


def record_call(
    fun: Callable[..., Any], args: Any, kwargs: Any, chosen: ArgumentSet = NO_ARGUMENTS
) -> tuple[Program, Any, Any]:
    """Return the program of ``fun`` for such arguments, its result's structure, captured values.

    The new values of references that it writes are further outputs of the program.
    """
    caller = name_of(fun)
    static, (positional, named) = chosen.separate(args, kwargs, caller)
    leaves, structure = tree.flatten((positional, named))
    refs: dict[int, Ref] = {}
    if any([isinstance(x, Ref) for x in leaves]):
        leaves, refs = read_refs(
            leaves, caller, lambda: argument_leaves.leaf_names(fun, positional, named)
        )
    fixed = {which: s.value for which, s in static}
    dynamic = [() if i in fixed else x for i, x in enumerate(args)]
    names = argument_leaves.LeafNames(fun, dynamic, named)
    pairs = equal_lengths(structure, leaves)

    def call(*values: Any) -> Any:
        all_args, all_named = rejoin(fixed, *tree.unflatten(structure, values))
        return argument_leaves.without_float0(fun(*all_args, **all_named))

    writing = giving(Parts(call, dict(argument_leaves.kinds_of(refs))), [])

    def flat(*values: Any) -> Any:
        (result, given), written = writing(*share_lengths(values, pairs))
        outs, out_structure = argument_leaves.values_of_tree(result, caller, "the result")
        return [*outs, *given, *written], out_structure

    return record(flat, types_of(leaves, caller, lambda: names), names, caller)


@overload
def make_graph(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: Literal[False] = False,
    *,
    simplified: bool = False,
) -> Callable[..., Program]: ...
@overload
def make_graph(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    *,
    return_shape: Literal[True],
    simplified: bool = False,
) -> Callable[..., tuple[Program, Any]]: ...
@overload
def make_graph(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    *,
    simplified: bool = False,
) -> Callable[..., Any]: ...
def make_graph(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    *,
    simplified: bool = False,
) -> Callable[..., Any]:
    """Make a function of the same arguments that returns the typed program ``fun`` is traced to.

    The program is shown as it was recorded, including work that no result needs.
    ``simplified=True`` shows what is left of it before it is compiled: without dead work, and with
    equal work and work on constants done once.

    Args:
        fun: a function of trees of arrays.
        static_argnums: positions of arguments that are passed as they are, and must be hashable.
        axis_env: the names and sizes of axes that collectives in ``fun`` may use, as if it were
            mapped over them.
        return_shape: whether the tree of ``ShapeDtypeStruct`` that ``eval_shape`` gives is
            returned as well.
        simplified: whether the program is simplified, as before it is compiled.

    Returns:
        A function whose arguments may be arrays or ``ShapeDtypeStruct``, and whose result is the
        program, which prints itself; with ``return_shape`` a pair of that and the tree.

    Raises:
        TypeError: ``fun`` is not a function.
        ValueError: a static argument is not there; or, in a call, is not hashable.

    >>> import stretto as st, stretto.numpy as snp
    >>> def f(x):
    ...     unused = snp.exp(x)
    ...     return snp.sin(x) * 2
    >>> print(st.make_graph(f)(1.0))
    { f(a:f32*[])
      b:f32*[] = exp a
      c:f32*[] = sin a
      d:f32*[] = mul c 2.0
      return d }
    >>> print(st.make_graph(f, simplified=True)(1.0))
    { f(a:f32*[])
      b:f32*[] = sin a
      c:f32*[] = mul b 2.0
      return c }
    """
    caller = "make_graph"
    decorate = argument_leaves.wraps(fun, caller)  # first: it refuses what is no function
    chosen = argument_set(fun, static_argnums, None, "static", caller)
    axes = [(name, operator.index(size)) for name, size in axis_env or ()]

    @decorate
    def graph(*args: Any, **kwargs: Any) -> Any:
        recorded = functools.partial(record_call, fun, args, kwargs, chosen)
        for name, size in axes:
            recorded = functools.partial(over_axis, name, size, recorded)
        program, structure, _ = recorded()
        if simplified:
            program = _simplify(live(program))
        return (program, shapes_of(program, structure)) if return_shape else program

    return graph


def shapes_of(program: Program, structure: Any) -> Any:
    """Return the types of the results, as a tree."""
    return tree.unflatten(
        structure, [struct_of(t) for t in program.out_types[: structure.num_leaves]]
    )


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of the results without computing them.

    Args:
        fun: a function of trees of arrays.
        *args: its arguments: arrays, or what has a shape and a dtype alone, as
            ``ShapeDtypeStruct`` has.
        **kwargs: the same, by name.

    Returns:
        A tree of ``ShapeDtypeStruct`` like the result.

    Raises:
        TypeError: an argument is neither, or a traced value is used as a Python number.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.eval_shape(lambda x: x @ x.T, snp.ones((2, 3)))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    with boundary:
        program, structure, _ = record_call(fun, args, kwargs)
    return shapes_of(program, structure)


def typeof(x: ArrayLike) -> ArrayType:
    """Return the type of an array or a number: shape and dtype, and whether the dtype is weak.

    Args:
        x: an array, or a number.

    Returns:
        The type; equal types are one object.

    Raises:
        TypeError: ``x`` is not an array or a number.

    >>> import stretto as st, stretto.numpy as snp
    >>> typeof(snp.ones((2, 3)))
    float32[2,3]
    """
    return as_value(x, "typeof").type
