"""``jax.interpreters.mlir``: the ways that libraries' primitives are compiled.

A primitive is compiled as a function of operations that there are: its implementation, or what
``lower_fun`` was given. A rule that writes MLIR is refused, but for one that calls Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto.compat.jax.avals import get_aval
from stretto.compat.jax.callbacks import io_callback, pure_callback
from stretto.compat.jax.jaxprs.primitive import Primitive
from stretto.compat.jax.naming import RefusedName

__all__ = [
    "LoweringRuleContext",
    "ModuleContext",
    "emit_python_callback",
    "ir",
    "lower_fun",
    "lowerings",
    "register_lowering",
]

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
