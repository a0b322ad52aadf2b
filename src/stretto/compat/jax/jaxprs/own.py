"""Libraries' primitives as operations of Stretto's: ``stretto.primitive``, with rules from tables.

The rules are looked up when they are needed, so that they may be given after the primitive was
first applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.interpreter import as_value, state
from stretto._engine.higher_order.user_primitive import primitive as operation
from stretto.compat.jax.avals import aval_of
from stretto.compat.jax.jaxprs import ad, batching, mlir
from stretto.compat.jax.jaxprs.primitive import Primitive

__all__ = ["apply", "operation_of"]


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
        return single(mlir.lower_primitive(p, args, outs, params))

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
