"""Libraries' primitives as operations of Stretto's: ``stretto.primitive``, with rules from tables.

The rules are looked up when they are needed, so that they may be given after the primitive was
first applied. In ``jax.interpreters.mlir``, a primitive is compiled as a function of operations
that there are: its implementation, or what ``lower_fun`` was given. A rule that writes MLIR is
refused, but for one that calls Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.core.interpreter import as_value, state
from stretto._engine.higher_order.user_primitive import primitive as operation
from stretto.compat.jax.avals import aval_of, get_aval
from stretto.compat.jax.calls import io_callback, pure_callback
from stretto.compat.jax.jaxprs import ad, batching
from stretto.compat.jax.jaxprs.primitive import Primitive
from stretto.compat.jax.naming import RefusedName

lowerings: dict[Primitive, Callable[..., Any]] = {}
"""The rule of each primitive, for any platform."""

ir = RefusedName(
    "jax.interpreters.mlir.ir",
    "programs are not written as MLIR here: give jax.interpreters.mlir.lower_fun a function",
)


class ModuleContext:
    """Holds what the rules of one program share, which is nothing here."""

    platforms = ("cpu",)

    def add_keepalive(self, keepalive: Any) -> None:
        """Nothing: programs keep what they call."""


class LoweringRuleContext:
    """Tells a rule of the operation that it is to write: the types, first of all."""

    def __init__(self, primitive: Primitive, avals_in: Any, avals_out: Any) -> None:
        self.primitive, self.avals_in, self.avals_out = primitive, avals_in, avals_out
        self.module_context = ModuleContext()
        self.tokens_in = self.tokens_out = None

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """Return a copy with some fields replaced."""
        new = LoweringRuleContext(self.primitive, self.avals_in, self.avals_out)
        vars(new).update(vars(self), **changes)
        return new


class _Function:
    """A rule that is a function of operations."""

    def __init__(self, fun: Callable[..., Any], multiple: bool) -> None:
        self.fun, self.multiple = fun, multiple

    def __call__(self, ctx: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        """Return the function's results, in a list."""
        out = self.fun(*operands, **params)
        return list(out) if self.multiple else [out]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """Return the rule to compile a primitive as a function of operations that there are.

    Args:
        fun: a function of arrays, and of the primitive's parameters by name.
        multiple_results: whether it returns a list.
    """
    return _Function(fun, multiple_results)


def register_lowering(
    prim: Primitive,
    rule: Callable[..., Any],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Give the rule by which a primitive is compiled; one for a platform alone is left aside."""
    del inline, cacheable
    if platform in (None, "cpu"):
        lowerings[prim] = rule


def lower_primitive(
    p: Primitive, args: tuple[Any, ...], outs: Any, params: dict[str, Any]
) -> list[Any]:
    """Return what stands for a primitive in a program, by its rule or implementation."""
    rule = lowerings.get(p)
    if rule is None:
        out = p.impl(*args, **params)
        return list(out) if p.multiple_results else [out]
    return list(rule(LoweringRuleContext(p, [get_aval(x) for x in args], outs), *args, **params))


def emit_python_callback(
    ctx: Any,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Call a Python function where the rule stands.

    Args:
        ctx: what the rule got.
        callback: a function of arrays that returns a tuple of them.
        token: stands for the order of effects; it is handed back.
        operands: the arrays.
        operand_avals: their abstract values.
        result_avals: those of the results.
        has_side_effect: whether it is called for its effect as well.
        returns_token: whether it has an order; not asked here.
        partitioned: must be False.
        sharding: must be None.

    Returns:
        The results, the token, and what has to be kept alive, which is nothing.
    """
    del ctx, operand_avals, returns_token, partitioned
    call = io_callback if has_side_effect else pure_callback
    results = call(lambda *xs: tuple(callback(*xs)), tuple(result_avals), *operands,
                   sharding=sharding)  # fmt: skip
    return list(results), token, None


class _OfLibrary(operation[..., Any]):
    """The operation that a library's primitive is.

    Its parameters may be anything, and new ones at each call, so applications are not remembered.
    """

    made_by: Primitive

    def _operation(self, arguments: Any, options: dict[str, Any]) -> Any:
        return self._make(arguments, options)


def operation_of(p: Primitive) -> Any:
    """Return the operation that a primitive is, made once."""
    if p.operation is None:
        p.operation = _made(p)
    return p.operation


def _made(p: Primitive) -> _OfLibrary:
    def results(out: Any) -> Any:
        return tuple(out) if p.multiple_results else out

    def single(outs: Sequence[Any]) -> Any:
        return tuple(outs) if p.multiple_results else outs[0]

    def fun(*args: Any, **params: Any) -> Any:
        if state.interpreter.at_rest:
            return results(p.impl(*args, **params))
        outs = _avals(p, [x.type for x in args], params)[0] if p.has_abstract_eval else None
        return single(lower_primitive(p, args, outs, params))

    fun.__name__ = fun.__qualname__ = p.name
    made = _OfLibrary(fun)
    made.made_by = p

    def infer(*types: Any, **params: Any) -> Any:
        return single(_avals(p, types, params)[0])

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        rule = ad.rule_of(ad.primitive_jvps, p, "jvp", "interpreters.ad.primitive_jvps")
        out, dout = rule(primals, tuple(map(ad.as_tangent, tangents)), **params)
        if not p.multiple_results:
            return out, ad.from_tangent(dout, out)
        return tuple(out), tuple(map(ad.from_tangent, dout, out))

    def transpose(ct: Any, *args: Any, **params: Any) -> Any:
        operands = tuple(map(ad.as_operand, args))
        given = tuple(map(ad.as_tangent, ct)) if p.multiple_results else ad.as_tangent(ct)
        back = ad.get_primitive_transpose(p)(given, *operands, **params)
        if back is ad.Zero or type(back) is ad.Zero:
            back = [None] * len(args)
        return tuple(map(ad.from_cotangent, back, args))

    def vmap(size: int, mapped: Any, *args: Any, **params: Any) -> Any:
        axes = [0 if m else None for m in mapped]
        outs, varies = batching.call_batched(p, size, args, axes, params)
        return single(outs), single(varies)

    if p.has_abstract_eval:
        made.def_infer(infer)
    made.def_jvp(jvp, symbolic_zeros=True)
    made.def_transpose(transpose, symbolic_zeros=True)
    made.def_vmap(vmap)
    return made


def _avals(p: Primitive, types: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], Any]:
    """Return the abstract values of the results, and the effects."""
    out, effects = p.abstract_eval(*map(aval_of, types), **params)
    return list(out) if p.multiple_results else [out], effects


def apply(p: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the results of a primitive: one, or a tuple of them."""
    values = [as_value(x, p.name, f"operand {i}") for i, x in enumerate(args)]
    return operation_of(p)(*values, **params)
