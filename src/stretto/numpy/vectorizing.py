"""Functions applied to many small arrays, along axes, and by pieces.

``vectorize`` and ``frompyfunc`` take one ``vmap`` for each axis of the shape that the arguments
broadcast to, over the arguments that have this axis: none is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from stretto._engine.api.argument_leaves import wraps
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.integers import entries_of, integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.cond import switch
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, full_like
from stretto._engine.ops.comparison import where as choose_by
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import canonical_axis, expand_dims, reshape, squeeze
from stretto.numpy.logic import truth
from stretto.numpy.manipulation import ravel
from stretto.numpy.ufunc import ufunc

__all__ = ["apply_along_axis", "apply_over_axes", "frompyfunc", "piecewise", "vectorize"]

_Core: TypeAlias = tuple[str, ...]
"""The names, or numbers, of the axes that the function itself sees."""

_NAME = r"\w+"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIDE = rf"{_CORE}(?:,{_CORE})*"
_SIGNATURE = re.compile(rf"({_SIDE})->({_SIDE})")


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Iterable[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Apply a function of small arrays to larger ones, which broadcast, example by example.

    With the signature ``"(m,n),(n)->(m)"`` the function takes a matrix and a vector and gives a
    vector: these are the last axes of arguments and results, and those before broadcast. Axes of
    one name have one size; a number is a size itself.

    The result raises ``ValueError`` for arguments or results that do not match the signature, and
    ``TypeError`` for another number of them. With a signature it takes only those keyword arguments
    that are excluded.

    Args:
        pyfunc: a function of arrays.
        excluded: the positions and keywords of arguments that it gets unchanged; None is always
            passed on.
        signature: the axes of arguments and results; scalars by default.

    Returns:
        The function of larger arrays.

    Raises:
        TypeError: ``excluded`` holds something other than integers and strings.
        ValueError: a position is negative, or ``signature`` is not well formed.

    As NumPy's ``vectorize``, with its generalized ufuncs' signatures.

    >>> import stretto.numpy as snp
    >>> product = snp.vectorize(lambda x, y: x @ y, signature="(m,n),(n)->(m)")
    >>> product(snp.ones((4, 2, 3)), snp.ones(3)).shape
    (4, 2)
    """
    exclusions = frozenset(excluded)
    if not all(isinstance(e, (int, str)) for e in exclusions):
        raise TypeError(f"vectorize: excluded must hold integers and strings, got {excluded!r}")
    if any(isinstance(e, int) and e < 0 for e in exclusions):
        raise ValueError(f"vectorize: excluded positions must not be negative, got {excluded!r}")
    sides = None if signature is None else _parse(signature)

    @wraps(pyfunc, "vectorize")
    def vectorized(*args: Any, **kwargs: Any) -> Tree:
        named = [k for k in kwargs if k not in exclusions and kwargs[k] is not None]
        places = [i for i, a in enumerate(args) if i not in exclusions and a is not None]
        if sides is not None:
            _check_arguments(sides[0], len(args) - len(exclusions & {*range(len(args))}), named)

        def fun(*examples: Any) -> Tree:
            positional, keywords = list(args), dict(kwargs)
            for i, example in zip(places, examples, strict=False):
                positional[i] = example
            keywords.update(zip(named, examples[len(places) :], strict=True))
            return pyfunc(*positional, **keywords)

        mapped = [args[i] for i in places] + [kwargs[k] for k in named]
        if sides is None:
            cores: list[_Core] = [()] * len(mapped)
        else:
            inside = [i for i in range(len(args)) if i not in exclusions]
            cores = [sides[0][inside.index(i)] for i in places]
            for i, core in zip(inside, sides[0], strict=True):
                if args[i] is None and core:
                    raise ValueError(f"vectorize: argument {i} is None; the signature has {core}")
        return _apply(fun, mapped, cores, None if sides is None else sides[1])

    return vectorized


def _parse(signature: str) -> tuple[list[_Core], list[_Core]]:
    match = _SIGNATURE.fullmatch(signature.replace(" ", ""))
    if match is None:
        raise ValueError(
            f"vectorize: a signature is written as '(m,n),(n)->(m)'; got {signature!r}"
        )
    inputs, outputs = (
        [tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, side)]
        for side in match.groups()
    )
    return inputs, outputs


def _check_arguments(cores: Sequence[_Core], count: int, named: Sequence[str]) -> None:
    if named:
        raise TypeError(
            f"vectorize: with a signature keyword arguments are passed on only if they are "
            f"excluded; got {', '.join(named)}"
        )
    if count != len(cores):
        raise TypeError(f"vectorize: the signature is for {len(cores)} arguments, got {count}")


def _apply(
    fun: Callable[..., Any],
    args: Sequence[ArrayLike],
    cores: Sequence[_Core],
    wanted: Sequence[_Core] | None,
) -> Tree:
    """Apply the function at each index of the shape that its arguments broadcast to."""
    values = [as_value(x, "vectorize", f"argument {i}") for i, x in enumerate(args)]
    sizes: dict[str, int] = {}
    outer = []
    for i, (x, core) in enumerate(zip(values, cores, strict=True)):
        if x.ndim < len(core):
            raise ValueError(
                f"vectorize: argument {i} has the axes ({','.join(core)}) in the signature, and it "
                f"is {x.type}"
            )
        split = x.ndim - len(core)
        _check_sizes(core, x.shape[split:], sizes, f"argument {i}")
        outer.append(x.shape[:split])
    shape = broadcast_shapes("vectorize", *outer)
    mapped = _checked(fun, wanted, sizes)
    # An axis of size 1 that others stretch is dropped, and the argument not mapped there.
    axes: list[list[int]] = []
    for i, own in enumerate(outer):
        first = len(shape) - len(own)
        stretched = tuple([d for d, n in enumerate(own) if n != shape[first + d]])
        values[i] = squeeze(values[i], stretched)
        axes.append([first + d for d in range(len(own)) if d not in stretched])
    for d in reversed(range(len(shape))):
        mapped = vmap(mapped, tuple([0 if d in own else None for own in axes]))
    return mapped(*values)


def _checked(
    fun: Callable[..., Any], wanted: Sequence[_Core] | None, sizes: dict[str, int]
) -> Callable[..., Any]:
    """Return the function with its results checked against the signature."""
    if wanted is None:
        return fun

    def checked(*args: Any) -> Tree:
        out = fun(*args)
        is_sequence = isinstance(out, (tuple, list))
        if len(wanted) != 1 and not is_sequence:
            raise TypeError(
                f"vectorize: the signature has {len(wanted)} results, so the function must return "
                f"a tuple of them; got {type(out).__name__}"
            )
        if len(wanted) == 1 and is_sequence:
            raise TypeError("vectorize: the signature has one result; got a tuple")
        outs = list(out) if is_sequence else [out]
        if len(outs) != len(wanted):
            raise TypeError(f"vectorize: the signature has {len(wanted)} results; got {len(outs)}")
        known = dict(sizes)
        for i, (core, y) in enumerate(zip(wanted, outs, strict=True)):
            outs[i] = y = as_value(y, "vectorize", f"result {i}")
            if y.ndim != len(core):
                raise ValueError(
                    f"vectorize: result {i} has the axes ({','.join(core)}) in the signature, and "
                    f"it is {y.type}"
                )
            _check_sizes(core, y.shape, known, f"result {i}")
        return tuple(outs) if is_sequence else outs[0]

    return checked


def _check_sizes(core: _Core, shape: Sequence[int], sizes: dict[str, int], what: str) -> None:
    for name, n in zip(core, shape, strict=True):
        have = int(name) if name.isdigit() else sizes.setdefault(name, n)
        if have != n:
            raise ValueError(
                f"vectorize: the axis {name} of the signature has size {have}, and size {n} in "
                f"{what}"
            )


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: ArrayLike | None = None
) -> ufunc:
    """Make a ``ufunc`` of a function of scalars.

    Args:
        func: a function of ``nin`` scalars that gives ``nout`` of them.
        nin: the number of arguments.
        nout: the number of results.
        identity: what combines with any element to that element, if there is such a number.

    Returns:
        The ``ufunc``.

    Raises:
        TypeError: ``func`` cannot be called, or a number is not an integer.
        ValueError: a number is negative.

    As NumPy's ``frompyfunc``.

    >>> import stretto.numpy as snp
    >>> longest = snp.frompyfunc(lambda x, y: (x * x + y * y) ** 0.5, 2, 1, identity=0)
    >>> longest(snp.array([3.0, 0.0]), 4), longest.reduce(snp.array([3.0, 4.0, 12.0]))
    (Array([5., 4.], dtype=float32), Array(13., dtype=float32))
    """
    if not callable(func):
        raise TypeError(f"frompyfunc: expected a function, got {type(func).__name__}")
    nin, nout = integer(nin, "frompyfunc", "nin"), integer(nout, "frompyfunc", "nout")
    if nin < 0 or nout < 0:
        raise ValueError(f"frompyfunc: nin and nout must not be negative, got {nin} and {nout}")
    name = getattr(func, "__name__", type(func).__name__)
    return ufunc(vectorize(func), nin, nout, name=name, identity=identity)


_INT32 = np.dtype(np.int32)


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Apply a function to every vector along an axis, as under ``vmap``.

    Args:
        func1d: a function of an array of rank 1; what it returns takes the place of ``axis``.
        axis: the axis.
        arr: an array.
        *args: further arguments of the function.
        **kwargs: further keywords of the function.

    Returns:
        The results.

    Raises:
        TypeError: ``arr`` is not an array or a number.
        ValueError: ``axis`` is out of bounds.

    As NumPy's ``apply_along_axis``.

    >>> import stretto.numpy as snp
    >>> snp.apply_along_axis(lambda v: v[::-1], 1, snp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = as_value(arr, "apply_along_axis", "arr")
    along = canonical_axis(axis, x.ndim, "apply_along_axis")

    def fun(v: Array) -> Array:
        return func1d(v, *args, **kwargs)

    for _ in range(along, x.ndim - 1):  # the axes after it
        fun = vmap(fun, -1, -1)
    for _ in range(along):
        fun = vmap(fun)
    return fun(x)


def apply_over_axes(
    func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Iterable[int]
) -> Array:
    """Apply a function of an array and an axis to one axis after the other.

    Args:
        func: a function such as ``snp.sum``, which keeps the axis or removes it.
        a: an array.
        axes: an axis, or several.

    Returns:
        The last result, of the rank of ``a``: an axis that the function removes comes back with
        size 1.

    Raises:
        ValueError: the function returns an array of another rank, or an axis is out of bounds.
        TypeError: ``a``, or what the function returns, is not an array or a number.

    As NumPy's ``apply_over_axes``.

    >>> import stretto.numpy as snp
    >>> snp.apply_over_axes(snp.sum, snp.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    x = as_value(a, "apply_over_axes", "a")
    for axis in entries_of(axes):
        along = canonical_axis(axis, x.ndim, "apply_over_axes")
        result = as_value(func(x, along), "apply_over_axes", "the function's result")
        if result.ndim == x.ndim - 1:
            result = expand_dims(result, along)
        if result.ndim != x.ndim:
            raise ValueError(
                f"apply_over_axes: the function must keep the axis or remove it; given {x.type} it "
                f"returned {result.type}"
            )
        x = result
    return x


def piecewise(
    x: ArrayLike,
    condlist: Sequence[ArrayLike] | ArrayLike,
    funclist: Sequence[ArrayLike | Callable[..., Any]],
    *args: Any,
    **kw: Any,
) -> Array:
    """Evaluate a function that is defined by pieces.

    A function gets one element at a time, as under ``vmap``; its derivative is that of the function
    chosen.

    Args:
        x: an array, or a number.
        condlist: a boolean array, or a sequence of them; where several hold, the last counts.
        funclist: a function or number for each condition, and perhaps one more for where none
            holds, which is 0 otherwise.
        *args: further arguments of the functions.
        **kw: further keywords of the functions.

    Returns:
        The values, of the shape and dtype of ``x``.

    Raises:
        ValueError: ``funclist`` does not have one function for each condition, or one more.
        TypeError: ``x``, or what a function returns, is not an array or a number.

    As NumPy's ``piecewise``.

    >>> import stretto.numpy as snp
    >>> x = snp.array([-4.0, 4.0])
    >>> snp.piecewise(x, [x < 0, x >= 0], [-1, snp.sqrt])
    Array([-1.,  2.], dtype=float32)
    """
    v = as_value(x, "piecewise")
    masks: Any = condlist
    if not isinstance(masks, (list, tuple)) and np.ndim(masks) == v.ndim:
        masks = [masks]
    conditions = [truth(c, "piecewise", f"condlist[{i}]") for i, c in enumerate(masks)]
    functions: list[ArrayLike | Callable[..., Any]] = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        raise ValueError(
            f"piecewise: with {len(conditions)} conditions, {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected; got {len(funclist)}"
        )

    def branch(function: ArrayLike | Callable[..., Any]) -> Callable[[Any], Any]:
        def apply(element: Array) -> Array:
            out = function(element, *args, **kw) if callable(function) else function
            return convert(as_value(out, "piecewise", "a function's result"), v.dtype)

        return apply

    number = full(v.shape, len(conditions), _INT32)
    for i, condition in enumerate(conditions):
        number = choose_by(broadcast_to(condition, v.shape), full_like(number, i), number)
    branches = [branch(f) for f in functions]
    one = vmap(lambda i, element: switch(i, branches, element))
    return reshape(one(ravel(number), ravel(v)), v.shape) if v.ndim else one(
        reshape(number, (1,)), reshape(v, (1,)))[0]  # fmt: skip
