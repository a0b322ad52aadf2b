"""``jit``: a function that is compiled for each signature of its arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from stretto._engine.api import varying_sizes
from stretto._engine.api.jit.jitted import Jitted
from stretto._engine.api.jit.signature import argument_set, no_overlap
from stretto._engine.api.jit.stages import as_options
from stretto._engine.api.sharding.shardings import Shardings

if TYPE_CHECKING:
    from stretto._engine.api.varying_sizes.buckets import Buckets

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


@overload
def jit(
    fun: Callable[P, R_co],
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    dynamic_axes: Any = None,
    buckets: Buckets | None = None,
) -> Jitted[P, R_co]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    dynamic_axes: Any = None,
    buckets: Buckets | None = None,
) -> Callable[[Callable[P, R_co]], Jitted[P, R_co]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    dynamic_axes: Any = None,
    buckets: Buckets | None = None,
) -> Any:
    """Compile ``fun`` for each signature of its arguments.

    A signature is the tree structure, shapes, dtypes, weak types and static values. ``fun`` is run
    once for each, on traced values: what it prints or appends happens then, and arrays it captures
    become constants of that trace. Compiling for many signatures gives a ``RecompilationWarning``;
    donated arguments whose memory no result can use give a warning, too.

    Args:
        fun: a function of trees of arrays; without it, what is returned is a decorator.
        static_argnums: positions of arguments that are passed as they are, and must be hashable.
        static_argnames: the same, by name. Where only one of the two is given, the signature
            gives the other; where both are, each says all.
        donate_argnums: positions of arguments whose memory a result of their type may take. The
            array that was passed cannot be used after that; views of it that NumPy has keep their
            elements. Inside another transformation nothing is donated.
        donate_argnames: the same, by name.
        keep_unused: whether arguments that no result needs are passed nevertheless.
        inline: whether, inside another traced function, the operations are written there instead
            of called.
        compiler_options: flags of XLA by name, for a call outside other transformations.
        in_shardings: where the positional arguments are: a sharding, a ``PartitionSpec`` over the
            mesh in use, or None for wherever they are; or a tree of these that is a prefix of the
            tuple of arguments. Arrays that are nowhere in particular are put there.
        out_shardings: where the results are to be, likewise; None leaves it to the compiler.
        dynamic_axes: which axes of the positional arguments have any size: a dictionary from axes
            to names, equal names for equal sizes, or None; or a tree of these that is a prefix of
            the tuple of arguments. Inside, ``x.shape[0]`` of such an axis is a size that does
            arithmetic, makes shapes, and is a traced integer where a value is wanted. The function
            is traced once for all sizes, and compiled once for each bucket.
        buckets: the sizes that they are padded to; by default ``Buckets()``. What is past the true
            size has no influence on the results, which have their true sizes.

    Returns:
        A function of the same arguments, whose results are arrays. Its methods ``trace``,
        ``lower`` and ``eval_shape`` stop at earlier stages.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, a traced value is used as a Python
            number, a shape or a condition, which names the argument and the way out.
        ValueError: a position or name is not there, or is both static and donated; or, in a call,
            a static argument is not hashable, arrays are on different devices or elsewhere than
            ``in_shardings`` says, or an axis cannot be split so.
        DonatedArrayError: in a call, an array is used that was donated.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def affine(w, b, x):
    ...     return w @ x + b
    >>> affine(snp.eye(2), snp.ones(2), snp.array([1.0, 2.0]))
    Array([2., 3.], dtype=float32)
    >>> differences = st.jit(lambda x: x[1:] - x[:-1], dynamic_axes=({0: "n"},))
    >>> differences(snp.array([1.0, 4.0])), differences(snp.array([1.0, 4.0, 9.0]))
    (Array([3.], dtype=float32), Array([3., 5.], dtype=float32))
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            inline=inline,
            compiler_options=compiler_options,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            dynamic_axes=dynamic_axes,
            buckets=buckets,
        )
    if not callable(fun):
        raise TypeError(f"jit: expected a function, got {type(fun).__name__}")
    static = argument_set(fun, static_argnums, static_argnames, "static")
    donated = argument_set(fun, donate_argnums, donate_argnames, "donate")
    no_overlap(static, donated)
    options = as_options(compiler_options, "jit")
    shardings = Shardings(in_shardings, out_shardings)
    if dynamic_axes is not None:
        if in_shardings is not None or out_shardings is not None:
            raise ValueError("jit: dynamic_axes do not go together with shardings")
        how = (dynamic_axes, buckets or varying_sizes.dynamic_axes.Buckets())
        return varying_sizes.dynamic_axes.JittedByBucket(
            fun, static, donated, keep_unused, inline, options, *how
        )
    return Jitted(fun, static, donated, keep_unused, inline, options, shardings)
