"""Functions of ``jax.lax`` for several platforms and devices, for the one that there is.

What has a meaning only between devices is refused, with the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.position import named_call
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.cond import chosen
from stretto._engine.ops.collective.functions import all_gather, axis_size
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.platform_number import PlatformNumber, number_of
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.xla.device import default_backend

__all__ = ["after_all", "composite", "create_token", "dce_sink", "pbroadcast", "pcast",
           "platform_dependent", "precv", "psend", "ragged_all_to_all", "rng_uniform"]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def platform_dependent(
    *args: Any, default: Callable[..., R] | None = None, **per_platform: Callable[..., R]
) -> R:
    """Call the function for the platform that runs.

    What is traced has all of them, and is compiled with that of the platform alone; a file for
    several platforms has one for each. A file for any platform, as of ONNX, has that for ``cpu``.

    Args:
        *args: trees of arrays, which the functions take.
        default: the function for other platforms.
        **per_platform: a function for each platform, by its name: ``cpu``, ``cuda``, ``rocm``,
            ``tpu``. Their results have one structure and equal types.

    Returns:
        What the function returns.

    Raises:
        NotImplementedError: there is neither one for the platform nor a default.
        TypeError: while it is traced, the functions return different types.

    >>> import stretto as st
    >>> st.lax.platform_dependent(1.0, cpu=lambda x: x + 1, default=lambda x: x)
    2.0
    """
    names = tuple(per_platform)
    functions = dict(per_platform) if default is None else {**per_platform, "default": default}
    if state.interpreter.at_rest:
        return [*functions.values()][number_of(default_backend(), names, default is not None)](
            *args
        )
    with boundary:
        number = PlatformNumber(names, default is not None)()
        return chosen("platform_dependent", number, functions, args)


def composite(decomposition: Callable[P, R], name: str, version: int = 0) -> Callable[P, R]:
    """Name the operations of a function as one.

    JAX lets a compiler replace the whole by what it knows by that name; here it is compiled as it
    stands.

    Args:
        decomposition: a function.
        name: the name of the scope that its operations carry.
        version: which function of that name it is.

    Returns:
        A function that does the same, and has the same derivatives.

    >>> import stretto as st
    >>> st.lax.composite(lambda x: x * x, "my.square")(3.0)
    9.0
    """
    return named_call(decomposition, name=name if not version else f"{name}.v{version}")


def dce_sink(val: Tree, *, prevent_mlir_dce: bool = False) -> None:
    """Mark the arrays of a tree as used.

    It is for timing work that has no result. Here, what has neither an effect nor a result is left
    out all the same: return the values, and wait for them with ``block_until_ready``.

    Args:
        val: a tree of arrays.
        prevent_mlir_dce: has no effect.

    Raises:
        TypeError: a leaf is not an array.

    >>> import stretto as st
    >>> st.lax.dce_sink(st.numpy.ones(2))
    """
    for path, leaf in zip(tree.paths(val, "val"), tree.leaves(val), strict=True):
        as_value(leaf, "dce_sink", path)


def pbroadcast(x: T, axis_name: Hashable, source: int) -> T:
    """Give all examples of a mapped axis the values of one of them.

    Args:
        x: a tree of arrays.
        axis_name: the name of the axis of a ``vmap`` around the call, or a tuple of names.
        source: the place of that example.

    Returns:
        The tree of its values.

    Raises:
        ValueError: there is no such example.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pbroadcast(x, "i", 1), axis_name="i")(snp.array([5, 6, 7]))
    Array([6, 6, 6], dtype=int32)
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast: source must be from 0 to {size - 1}, got {source}")

    def one(rows: Array) -> Array:
        return reshape(slice_in_dim(rows, source, source + 1), rows.shape[1:])

    return tree.map(one, all_gather(x, axis_name))


def pcast(x: T, axis_name: Hashable, *, to: str) -> T:
    """Return a tree as it is, where JAX notes how values differ along a device axis.

    Args:
        x: a tree of arrays.
        axis_name: the name of the axis of a ``vmap`` around the call, or a tuple of names.
        to: ``"varying"``, ``"reduced"``, ``"unreduced"`` or ``"invarying"``.

    Returns:
        The same values.

    Raises:
        ValueError: ``to`` is anything else.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pcast(x, "i", to="varying"), axis_name="i")(snp.array([5, 6]))
    Array([5, 6], dtype=int32)
    """
    kinds = ("varying", "reduced", "unreduced", "invarying")
    if to not in kinds:
        raise ValueError(f"pcast: to must be one of {', '.join(kinds)}, got {to!r}")
    axis_size(axis_name)
    return tree.map(lambda leaf: as_value(leaf, "pcast"), x)


# Refused


def _refuse(caller: str, why: str) -> NoReturn:
    raise NotImplementedError(f"{caller}: {why}")


_NO_TOKENS = (
    "there are no tokens; effects are ordered by ordered=True of io_callback and debug.callback, "
    "operations by optimization_barrier"
)
_NO_SENDING = "sending and receiving are one operation: use ppermute along a mapped axis"


def create_token(_: object = None) -> NoReturn:
    """Refuse to be called: effects are ordered without tokens.

    Raises:
        NotImplementedError: always.
    """
    _refuse("create_token", _NO_TOKENS)


def after_all(*operands: Any) -> NoReturn:
    """Refuse to be called: effects are ordered without tokens.

    Raises:
        NotImplementedError: always.
    """
    _refuse("after_all", _NO_TOKENS)


def psend(x: Tree, axis_name: Hashable, perm: Sequence[tuple[int, int]]) -> NoReturn:
    """Refuse to be called: one half of ``ppermute``, between devices.

    Raises:
        NotImplementedError: always.
    """
    _refuse("psend", _NO_SENDING)


def precv(
    token: object, out_shape: Tree, axis_name: Hashable, perm: Sequence[tuple[int, int]]
) -> NoReturn:
    """Refuse to be called: one half of ``ppermute``, between devices.

    Raises:
        NotImplementedError: always.
    """
    _refuse("precv", _NO_SENDING)


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: Hashable,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> NoReturn:
    """Refuse to be called: it sends parts of unequal sizes between devices.

    Raises:
        NotImplementedError: always.
    """
    _refuse(
        "ragged_all_to_all",
        "parts have one size here: use all_to_all along a mapped axis, padded to the largest",
    )


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> NoReturn:
    """Refuse to be called: its numbers come from no key; see ``random``.

    Raises:
        NotImplementedError: always.
    """
    _refuse(
        "rng_uniform",
        "numbers without a key cannot be repeated; use random.uniform or random.randint with a key",
    )
