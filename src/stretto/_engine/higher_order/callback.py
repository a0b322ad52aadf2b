"""Calls of Python functions from programs: ``pure_callback``, ``io_callback``, ``debug_callback``.

The function is called with arrays while the program runs, and its results, whose types are declared
beforehand, are values of the program. The three differ in what may be done with the call: a pure
one may be dropped, repeated or moved; the others are effects and may not.

A user's function is a ``Host``: it is called with arrays, for results of declared types. Compiled
programs call it in threads of their own. It runs as if nothing were being traced, and under the
settings that were current when the call was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.config import shaping, under
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Tracer, Value, as_value, constant, refuse_masked, state
from stretto._engine.core.primitive import CALLBACK, ORDERED, Primitive, Refused
from stretto._engine.core.recorder import record
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType, array_type, canonical_dtype, kind_of, promote
from stretto._engine.higher_order.family import parting, values_of
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.layout import move_to_front, reshape

_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)
_WORK = 4e5  # some 20 µs, in the unit of Primitive.work


class _Callback(Primitive, abstract=True):
    """An operation that calls a Python function."""

    host: Host
    results: tuple[ArrayType, ...]

    multiple = True
    calls_python = True
    padded = Refused(
        "the Python function would be given what is past the sizes that vary, too: call it with "
        "arrays of fixed sizes, as what a reduction gives, or outside the function of any size"
    )

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.results

    def out_types(self, types: tuple[ArrayType, ...]) -> tuple[ArrayType, ...]:
        """Return the declared types; not cached, since that would keep the function alive."""
        return self.results

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Estimate at least that of a call of a Python function."""
        return _WORK

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Call it, once."""
        for a in args:
            a.to_host()
        return self._call(args)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Call it, once."""
        return tuple(v.to_host() for v in self._call([constant(x) for x in arrays]))

    def _call(self, values: Sequence[Any]) -> list[Any]:
        return self.host(values, self.results)

    onnx = Refused("it calls a Python function, which no file can hold: leave it out of the export")

    def lower(self, b: Any, *operands: Any) -> Any:
        effects = self.effects
        return b.host_call(self._call, operands, bool(effects), ORDERED in effects)

    def _for_each(
        self, size: int, args: Sequence[Any], axes: Sequence[int | None], unroll: int = 1
    ) -> Any:
        """Return a loop over the examples, with one call for each."""
        fixed = [x for x, a in zip(args, axes, strict=True) if a is None]
        moving = [move_to_front(x, a) for x, a in zip(args, axes, strict=True) if a is not None]

        def one(*values: Any) -> Any:
            shared, own = iter(values[: len(fixed)]), iter(values[len(fixed) :])
            return self(*[next(shared if a is None else own) for a in axes]), None

        types = [*(x.type for x in fixed), *(x.type.with_shape(x.shape[1:]) for x in moving)]
        body = record(one, types, name=self.host.name)[0]
        outs = Scan(body, size, len(fixed), 0, unroll=unroll)(*fixed, *moving)
        return outs, (0,) * len(outs)


class PureCallback(_Callback):
    """A call whose results depend on its arguments alone, and that has no other effect."""

    vmap_method: str | None = None

    jvp = Refused(
        "a Python function has no derivative that could be found: give one with "
        "stretto.custom_jvp or stretto.custom_vjp around the call"
    )
    transpose = Refused(
        "a Python function cannot be run backwards: give its reverse derivative with "
        "stretto.custom_vjp around the call"
    )

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Map the call as ``vmap_method`` says."""
        method = self.vmap_method
        if method is None:
            raise MissingRuleError(
                f"pure_callback of {self.host.name} was mapped by vmap, which must know how: pass "
                f"vmap_method='sequential' for a call an example, or 'expand_dims' or "
                f"'broadcast_all' if the function takes leading axes of examples"
            )
        if method.startswith("sequential"):
            unroll = max(1, size) if method == "sequential_unrolled" else 1
            return self._for_each(size, args, axes, unroll)
        whole = []
        for x, a in zip(args, axes, strict=True):
            if a is not None:
                whole.append(move_to_front(x, a))
            elif method == "broadcast_all":
                whole.append(broadcast_to(x, (size, *x.shape)))
            else:
                whole.append(reshape(x, (1, *x.shape)) if method == "expand_dims" else x)
        results = tuple(t.with_shape((size, *t.shape)) for t in self.results)
        return PureCallback(self.host, results, method)(*whole), (0,) * len(results)


class IoCallback(_Callback):
    """A call made for its effect, and perhaps for its results."""

    ordered: bool = False

    jvp = Refused(
        "a call for its effect has no derivative: call it on stretto.lax.stop_gradient(x), or give "
        "a rule with stretto.custom_jvp or stretto.custom_vjp around the call"
    )
    transpose = Refused("a call for its effect cannot be run backwards")

    @property
    def effects(self) -> frozenset[Any]:
        """A call of Python, in order or not, so that it is never left out."""
        return frozenset((ORDERED if self.ordered else CALLBACK,))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Call for each example; refuse ordered calls, since examples have no order."""
        if self.ordered:
            raise MissingRuleError(
                f"io_callback of {self.host.name} with ordered=True was mapped by vmap, and "
                f"examples have no order: pass ordered=False, or loop over the examples with "
                f"stretto.lax.map"
            )
        return self._for_each(size, args, axes)


class DebugCallback(_Callback):
    """A call to look at values: primals, one example at a time; it never hinders a derivative."""

    ordered: bool = False

    def onnx(self, b: Any, *operands: Any) -> Sequence[Any]:
        """Leave it out, since it only looks."""
        return ()

    @property
    def effects(self) -> frozenset[Any]:
        """A call of Python, in order or not, so that it is never left out."""
        return frozenset((ORDERED if self.ordered else CALLBACK,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), ()

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """Nothing comes back."""
        return [None] * len(args)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Return a call for each example, from the first to the last."""
        return self._for_each(size, args, axes)


def _of_arrays(
    make: Callable[[Host, tuple[ArrayType, ...]], _Callback],
    caller: str,
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    sharding: Any,
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
) -> Any:
    """Give the results of a callback whose arguments are arrays, and whose results are declared."""
    _check(callback, caller)
    if sharding is not None:
        raise ValueError(
            f"{caller}: sharding must be None, since programs over several devices cannot call "
            f"Python; got {sharding}"
        )
    types, structure = declared_types(result_shape_dtypes, caller)
    leaves, arguments_structure = tree.flatten(arguments)
    values = values_of(leaves, caller)
    host = Host(caller, callback, arguments_structure, {}, structure)
    return tree.unflatten(structure, make(host, tuple(types))(*values))


def _check(callback: Any, caller: str) -> None:
    if not callable(callback):
        raise TypeError(f"{caller}: callback must be a function, got {type(callback).__name__}")


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function whose results depend on its arguments alone; programs may, too.

    A compiled program may call it any number of times, in any order, in any thread, or not at all
    where no result needs it.

    Args:
        callback: is called with trees of arrays like ``args`` and ``kwargs``, and returns a tree of
            arrays (Stretto's, NumPy's, Python numbers).
        result_shape_dtypes: the shapes and dtypes of what it returns: a tree of
            ``ShapeDtypeStruct`` or arrays.
        *args: positional arguments: trees of arrays.
        sharding: must be None: programs over several devices cannot call Python.
        vmap_method: what ``vmap`` does. ``"sequential"`` and ``"sequential_unrolled"`` call it for
            each example; ``"expand_dims"``, ``"broadcast_all"`` and ``"legacy_vectorized"`` call it
            once, with a leading axis of examples for what is mapped, and for the rest one of size
            1, a repeated one, or none. By default ``vmap`` refuses it.
        **kwargs: keyword arguments: trees of arrays.

    Returns:
        A tree of arrays like ``result_shape_dtypes``.

    Raises:
        NotImplementedError: it is mapped without a method, or differentiated without a rule around
            it.
        TypeError: ``callback`` is not a function; or, where the program runs, its results are not
            those declared. What ``callback`` raises is raised there, too.
        ValueError: ``sharding`` is given, or ``vmap_method`` is unknown.

    >>> import numpy as np, stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def f(x):
    ...     y = st.pure_callback(np.sort, x, x, vmap_method="sequential")
    ...     return 2 * y
    >>> f(snp.array([3.0, 1.0, 2.0]))
    Array([2., 4., 6.], dtype=float32)
    """
    if vmap_method is not None and vmap_method not in _METHODS:
        raise ValueError(
            f"pure_callback: vmap_method must be one of {', '.join(map(repr, _METHODS))}, or None; "
            f"got {vmap_method!r}"
        )
    return _of_arrays(
        lambda host, types: PureCallback(host, types, vmap_method),
        "pure_callback",
        callback,
        result_shape_dtypes,
        sharding,
        (args, kwargs),
    )


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function for its effect, each time that the call is reached; programs may, too.

    The call of a compiled program returns when all its callbacks have returned.

    Args:
        callback: is called with trees of arrays like ``args`` and ``kwargs``, and returns a tree of
            arrays (Stretto's, NumPy's, Python numbers).
        result_shape_dtypes: the shapes and dtypes of what it returns: a tree of
            ``ShapeDtypeStruct`` or arrays; None for a function that returns nothing.
        *args: positional arguments: trees of arrays.
        sharding: must be None: programs over several devices cannot call Python.
        ordered: whether such calls come in the order of the program, through loops, branches and
            calls; otherwise ``vmap`` calls it for each example.
        **kwargs: keyword arguments: trees of arrays.

    Returns:
        A tree of arrays like ``result_shape_dtypes``.

    Raises:
        NotImplementedError: it is differentiated, or mapped while ``ordered``.
        TypeError: ``callback`` is not a function; or, where the program runs, its results are not
            those declared. What ``callback`` raises is raised there, too.
        ValueError: ``sharding`` is given.

    >>> import stretto as st
    >>> seen = []
    >>> @st.jit
    ... def f(x):
    ...     st.io_callback(lambda x: seen.append(float(x)), None, x, ordered=True)
    ...     return x + 1
    >>> float(f(1.0)), float(f(2.0)), seen
    (2.0, 3.0, [1.0, 2.0])
    """
    return _of_arrays(
        lambda host, types: IoCallback(host, types, ordered),
        "io_callback",
        callback,
        result_shape_dtypes,
        sharding,
        (args, kwargs),
    )


def debug_callback(
    caller: str,
    callback: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ordered: bool,
) -> None:
    """Call a Python function to look at values; what is not an array is passed on as it is."""
    _check(callback, caller)
    leaves, arguments = tree.flatten((args, kwargs))
    values, static = separate(leaves)
    DebugCallback(Host(caller, callback, arguments, static, None), (), ordered)(*values)


_SCALARS = (bool, int, float, complex)


class Host:
    """A function, with everything that its calls have in common.

    ``arguments`` is the structure of its arguments, and ``static`` has the leaves of it that are
    not arrays, by position. What the function returns must have the structure ``results``, or is
    ignored if that is ``None``.
    """

    def __init__(
        self,
        caller: str,
        function: Callable[..., Any],
        arguments: Any,
        static: dict[int, Any],
        results: Any,
    ) -> None:
        self.caller = caller
        self.function = function
        self.arguments = arguments
        self.static = static
        self.results = results
        self.settings = shaping()

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __repr__(self) -> str:
        return self.name

    def __call__(self, values: Sequence[Any], types: Sequence[ArrayType]) -> list[Any]:
        """Call the function on arrays; return its results, of these types."""
        arrays = iter(values)
        count = len(values) + len(self.static)
        leaves = [self.static[i] if i in self.static else next(arrays) for i in range(count)]
        args, kwargs = tree.unflatten(self.arguments, leaves)

        def run() -> list[Any]:
            out = self.function(*args, **kwargs)
            return [] if self.results is None else self._checked(out, types)

        return holding(state, "interpreter", state.eager, under, self.settings, run)

    def _checked(self, out: Any, types: Sequence[ArrayType]) -> list[Any]:
        leaves, structure = tree.flatten(out)
        if structure != self.results:
            raise TypeError(
                f"{self.caller}: {self.name} must return a tree like result_shape_dtypes; they "
                f"part at {parting(self.results, structure, 'result')}"
            )
        paths = tree.paths(out, "result")
        return [
            self._result(leaf, t, path) for leaf, t, path in zip(leaves, types, paths, strict=True)
        ]

    def _result(self, leaf: Any, type: ArrayType, path: str) -> Any:
        """Return the leaf as an array of the declared type.

        A Python number may have any that it fits.
        """
        if leaf.__class__ in _SCALARS:
            got = as_value(leaf, self.caller, path).type
            both = [(type.dtype, False), (got.dtype, got.weak_type)]
            if not type.shape and promote(both)[0] == type.dtype:
                return constant(np.asarray(leaf, type.dtype))
        elif isinstance(leaf, Tracer):
            leaf.escaped()
        else:
            refuse_masked(leaf, self.caller, path)
            host = leaf.to_host() if isinstance(leaf, Value) else np.asarray(leaf)
            got = array_type(host.shape, host.dtype)  # refuses strings, objects, dates
            if (got.shape, got.dtype) == (type.shape, type.dtype):
                return constant(host if isinstance(leaf, Value) else np.array(host, order="C"))
        ways = ["declare what it returns"]
        if got.size == type.size and got.shape != type.shape:
            ways.insert(0, f"reshape it with .reshape({type.shape})")
        if got.dtype != type.dtype:
            ways.insert(0, f"convert it with .astype({type.dtype.name!r})")
        raise TypeError(
            f"{self.caller}: {self.name} must return {type} for {path}, as result_shape_dtypes "
            f"declares; it returned {got}: {', or '.join(ways)}"
        )


def declared_types(result_shape_dtypes: Any, caller: str) -> tuple[list[ArrayType], Any]:
    """Return the types and the structure of a tree of things with shape and dtype.

    Raises ``TypeError`` for a leaf without them, ``ValueError`` for 64-bit types with
    ``enable_x64`` off.
    """
    leaves, structure = tree.flatten(result_shape_dtypes)
    types = []
    for leaf, path in zip(leaves, tree.paths(result_shape_dtypes, "result"), strict=True):
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(
                f"{caller}: result_shape_dtypes must be a tree of stretto.ShapeDtypeStruct or "
                f"arrays, got {type(leaf).__name__} for {path}"
            )
        dtype = np.dtype(leaf.dtype)
        kind_of(dtype)
        if canonical_dtype(dtype) != dtype:
            raise ValueError(
                f"{caller}: result_shape_dtypes declares {dtype.name} for {path}, but "
                f"enable_x64 is off: declare {canonical_dtype(dtype).name}, or run under "
                f"stretto.enable_x64()"
            )
        types.append(array_type(tuple(leaf.shape), dtype))
    return types, structure


def separate(leaves: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
    """Return the leaves that are arrays or numbers, as values; and the others, by position."""
    values, static = [], {}
    for i, leaf in enumerate(leaves):
        try:
            values.append(as_value(leaf))
        except (TypeError, OverflowError):
            static[i] = leaf
    return values, static
