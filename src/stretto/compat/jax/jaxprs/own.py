"""Libraries' primitives as operations of Stretto's: ``stretto.primitive``, with rules from tables.

The rules are looked up when they are needed, so that they may be given after the primitive was
first applied.

Derivative rules are those of ``jax.interpreters.ad``. A zero is a ``Zero``, which is Stretto's
``SymbolicZero`` in other words; an argument that is to be transposed by is an ``UndefinedPrimal``,
Stretto's ``Linear``. Rules for ``vmap`` are those of ``jax.interpreters.batching``, where those of
Stretto's own operations can be looked up, and replaced.

In ``jax.interpreters.mlir``, a primitive is compiled as a function of operations that there are:
its implementation, or what ``lower_fun`` was given. A rule that writes MLIR is refused, but for one
that calls Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.jvp import Dual
from stretto._engine.autodiff.vmap import AxisSize, Batched
from stretto._engine.core.errors import PerturbationError
from stretto._engine.core.interpreter import Linear, Value, as_value, state
from stretto._engine.core.types import ArrayType, float0
from stretto._engine.higher_order import custom_function
from stretto._engine.higher_order.custom_function import zero_from_primal
from stretto._engine.higher_order.user_primitive import primitive as operation
from stretto._engine.ops.arithmetic import add
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full
from stretto._engine.ops.layout import move_axis
from stretto.compat.jax.avals import ShapedArray, aval_of, get_aval
from stretto.compat.jax.calls import io_callback, pure_callback
from stretto.compat.jax.jaxprs.jaxpr import SPELLINGS, spell_operation
from stretto.compat.jax.jaxprs.operations import primitive_of
from stretto.compat.jax.jaxprs.primitive import KnownPrimitive, Primitive
from stretto.compat.jax.modules import RefusedName
from stretto.tree import register_pytree_node

primitive_jvps: dict[Primitive, Callable[..., Any]] = {}
"""The rule of each primitive, from (primals, tangents) and parameters to results and tangents."""

primitive_transposes: dict[Primitive, Callable[..., Any]] = {}
"""The rule of each primitive, from cotangents, operands and parameters to the operands' cotangents.

Rules given for Stretto's own operations are kept here, and not used.
"""

CustomVJPException = PerturbationError
JVPTracer = Dual
add_jaxvals_p = primitive_of("add_jaxvals")


class _OfAval(type):
    def __call__(cls, aval: Any) -> Any:
        return custom_function.SymbolicZero(tuple(aval.shape), np.dtype(aval.dtype))

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, custom_function.SymbolicZero)


class SymbolicZero(metaclass=_OfAval):
    """Stretto's zeros in rules of functions, made of an abstract value as JAX's are.

    Args:
        aval: the abstract value.
    """


class Zero:
    """A tangent or cotangent that is known to be zero.

    Args:
        aval: its abstract value.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

    @staticmethod
    def from_primal_value(value: Any) -> Zero:
        """Return the zero tangent of a value."""
        return Zero(get_aval(value).to_tangent_aval())

    def instantiate(self) -> Any:
        """Return the array of zeros."""
        return zeros_like_aval(self.aval)


class UndefinedPrimal:
    """Stands for an argument whose cotangent is asked for, in a rule to transpose.

    Args:
        aval: its abstract value.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


# Trees without leaves, so that ``vmap`` and others hand them on.
for _node in (Zero, UndefinedPrimal):
    register_pytree_node(_node, lambda x: ((), x.aval), lambda aval, _, node=_node: node(aval))


def is_undefined_primal(x: Any) -> bool:
    """Say whether it is an ``UndefinedPrimal``."""
    return type(x) is UndefinedPrimal


def zeros_like_aval(aval: Any) -> Any:
    """Return the array of zeros of an abstract value."""
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return full(tuple(aval.shape), 0, np.dtype(aval.dtype), bool(aval.weak_type))


def instantiate_zeros(tangent: Any) -> Any:
    """Return the tangent, as an array of zeros if it is a ``Zero``."""
    return tangent.instantiate() if type(tangent) is Zero else tangent


def add_jaxvals(x: Any, y: Any) -> Any:
    """Return the sum of two arrays."""
    return add(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, either of which may be a ``Zero``."""
    return y if type(x) is Zero else x if type(y) is Zero else add(x, y)


# Shorthand for rules


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Give the rules of a linear primitive; the transpose takes cotangents and operands."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            if primitive.multiple_results:
                return out, [Zero.from_primal_value(o) for o in out]
            return out, Zero.from_primal_value(out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    def transpose(cts: Any, *args: Any, **params: Any) -> Any:
        every = cts if primitive.multiple_results else [cts]
        if all(type(ct) is Zero for ct in every):
            return [None] * len(args)
        return transpose_rule(cts, *args, **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Set the rules of a linear primitive, by a transpose that takes cotangents alone."""
    deflinear2(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Give a rule for each operand: from its tangent and all operands to that of the result."""
    rules = [r and functools.partial(_without_result, r) for r in jvprules]
    defjvp2(primitive, *rules)


def _without_result(rule: Callable[..., Any], dx: Any, out: Any, *primals: Any, **ps: Any) -> Any:
    return rule(dx, *primals, **ps)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Set rules as ``defjvp`` does that get the result after the tangent."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        terms = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, functools.reduce(add_tangents, terms, Zero.from_primal_value(out))

    primitive_jvps[primitive] = jvp


def defbilinear(
    prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]
) -> None:
    """Give the rules of a primitive linear in each of two operands, by its two transposes."""

    def left(dx: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(dx, y, **params)

    def right(dy: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(x, dy, **params)

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(prim, left, right)
    primitive_transposes[prim] = transpose


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """Return the rule to transpose a primitive.

    Raises:
        NotImplementedError: there is none.
    """
    return rule_of(primitive_transposes, p, "transpose", "interpreters.ad.primitive_transposes")


def rule_of(table: dict[Primitive, Any], p: Primitive, what: str, home: str) -> Callable[..., Any]:
    """Return the rule of a primitive in a table, or raise an error in words."""
    rule = table.get(p)
    if rule is None:
        raise NotImplementedError(
            f"primitive {p.name} has no rule for {what}: give one in jax.{home}"
        )
    return rule


# From Stretto's words to these, and back


def as_tangent(t: Any) -> Any:
    """Return a tangent or cotangent as rules get it."""
    is_zero = isinstance(t, custom_function.SymbolicZero)
    return Zero(ShapedArray(t.shape, t.dtype)) if is_zero else t


def from_tangent(t: Any, like: Any) -> Any:
    """Return a tangent that a rule returned for a result like this one."""
    if t is None or t is Zero or type(t) is Zero:
        return zero_from_primal(like, symbolic_zeros=True)
    return t


def as_operand(x: Any) -> Any:
    """Return an operand as rules to transpose get it."""
    if isinstance(x, Linear):
        return UndefinedPrimal(ShapedArray(x.shape, x.dtype, x.type.weak_type))
    return x


def from_cotangent(ct: Any, x: Any) -> Any:
    """Return a rule's cotangent for this operand; None for zero, and for a known one."""
    known = isinstance(x, Value) or not isinstance(x, (Linear, UndefinedPrimal))
    return None if known or ct is None or ct is Zero or type(ct) is Zero else ct


_own_rules: dict[type, Any] = {}
"""The rule of each class of operations of which a library replaced it."""


class _Batchers(dict[Primitive, Callable[..., Any]]):
    """Rules by primitive; what is assigned to one of Stretto's operations takes its rule's place.

    Until then the rule of such a one is a function that applies Stretto's.
    """

    def __missing__(self, p: Primitive) -> Callable[..., Any]:
        if not isinstance(p, KnownPrimitive):
            raise KeyError(p)
        return functools.partial(_by_own_rule, p)

    def __contains__(self, p: object) -> bool:
        return isinstance(p, KnownPrimitive) or super().__contains__(p)

    def get(self, p: Any, default: Any = None) -> Any:
        """Return the rule, or the default where there is none."""
        try:
            return self[p]
        except KeyError:
            return default

    def __setitem__(self, p: Primitive, rule: Callable[..., Any]) -> None:
        super().__setitem__(p, rule)
        if isinstance(p, KnownPrimitive):
            for cls in [cls for cls, spelling in SPELLINGS.items() if spelling.primitive is p]:
                _replace(cls, rule)


def _example(type: ArrayType, axis: int | None) -> ArrayType:
    shape = type.shape
    return type if axis is None else type.with_shape((*shape[:axis], *shape[axis + 1 :]))


def _by_own_rule(p: KnownPrimitive, args: Any, axes: Any, **params: Any) -> Any:
    """Return the result of the rule that an operation has by itself, and where its examples lie."""
    values = [as_value(x, p.name, f"operand {i}") for i, x in enumerate(args)]
    places = range(len(values)) if p.order is None else p.order
    values, axes = [values[i] for i in places], [axes[i] for i in places]
    types = tuple([_example(v.type, a) for v, a in zip(values, axes, strict=True)])
    operation = p.build(params, types)
    size = next(v.shape[a] for v, a in zip(values, axes, strict=True) if a is not None)
    rule = _own_rules.get(type(operation), type(operation).vmap)
    out, axis = rule(operation, size, values, axes)
    return (list(out), list(axis)) if p.multiple_results else (out, axis)


def _replace(cls: Any, rule: Callable[..., Any]) -> None:
    """Have operations of this class mapped by a library's rule."""
    _own_rules.setdefault(cls, cls.vmap)

    def vmap(self: Any, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        types = [_example(x.type, a) for x, a in zip(args, axes, strict=True)]
        _, params, places = spell_operation(self, types)
        out, axis = rule(
            tuple([args[i] for i in places]), tuple([axes[i] for i in places]), **params
        )
        return (tuple(out), tuple(axis)) if self.multiple else (out, axis)

    cls.vmap = vmap


primitive_batchers: dict[Primitive, Callable[..., Any]] = _Batchers()
"""The rule of each primitive, from operands, the mapped axis of each (None: the same for all), and
parameters to results and their mapped axes."""

axis_primitive_batchers: dict[Primitive, Callable[..., Any]] = {}
"""The same for rules that get the size of the axis, its name and the kind of trace first."""

fancy_primitive_batchers: dict[Primitive, Callable[..., Any]] = {}
"""The same for rules that get size and name as one object first."""

BatchTracer = Batched
not_mapped = None


class AxisData:
    """The size of a mapped axis, and its name."""

    def __init__(self, size: int) -> None:
        self.name = size.name if isinstance(size, AxisSize) else None
        self.size = int(size)
        self.spmd_name = self.explicit_mesh_axis = None


def call_batched(
    p: Primitive, size: int, args: tuple[Any, ...], axes: list[int | None], params: dict[str, Any]
) -> tuple[list[Any], list[bool]]:
    """Return a rule's results, with examples along axis 0, and which are mapped."""
    axis = AxisData(size)
    if p in fancy_primitive_batchers:
        outs, dims = fancy_primitive_batchers[p](axis, args, axes, **params)
    elif p in axis_primitive_batchers:
        rule = axis_primitive_batchers[p]
        outs, dims = rule(axis.size, axis.name, None, args, axes, **params)
    elif p in primitive_batchers:
        outs, dims = primitive_batchers[p](args, axes, **params)
    else:
        raise NotImplementedError(
            f"primitive {p.name} has no rule for vmap: give one in "
            f"jax.interpreters.batching.primitive_batchers"
        )
    if not p.multiple_results:
        outs, dims = [outs], [dims]
    elif dims is None or isinstance(dims, int):
        dims = [dims] * len(outs)
    values = [as_value(o, p.name, "a result of its rule for vmap") for o in outs]
    fronted = [o if d is None else move_axis(o, d, 0) for o, d in zip(values, dims, strict=True)]
    return fronted, [d is not None for d in dims]


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """Return the array repeated along a new axis."""
    del mesh_axis
    x = as_value(x, "broadcast")
    return move_axis(broadcast_to(x, (sz, *x.shape)), 0, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """Return the array with its examples along axis 0; repeated if it is the same for all."""
    return broadcast(x, size, 0, mesh_axis) if bdim is None else move_axis(x, bdim, 0)


def defvectorized(prim: Primitive) -> None:
    """Give the rule of a primitive that works on any leading axes, all operands alike."""

    def rule(args: Any, axes: Any, **params: Any) -> Any:
        out = prim.bind(*args, **params)
        return out, [axes[0]] * len(out) if prim.multiple_results else axes[0]

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Give the rule of a primitive that works on operands of one shape, element by element."""

    def rule(args: Any, axes: Any, **params: Any) -> Any:
        size = next(x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None)
        fronted = [bdim_at_front(x, a, size) for x, a in zip(args, axes, strict=True)]
        out = prim.bind(*fronted, **params)
        return out, [0] * len(out) if prim.multiple_results else 0

    primitive_batchers[prim] = rule


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
        """Do nothing: programs keep what they call."""


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
        rule = rule_of(primitive_jvps, p, "jvp", "interpreters.ad.primitive_jvps")
        out, dout = rule(primals, tuple(map(as_tangent, tangents)), **params)
        if not p.multiple_results:
            return out, from_tangent(dout, out)
        return tuple(out), tuple(map(from_tangent, dout, out))

    def transpose(ct: Any, *args: Any, **params: Any) -> Any:
        operands = tuple(map(as_operand, args))
        given = tuple(map(as_tangent, ct)) if p.multiple_results else as_tangent(ct)
        back = get_primitive_transpose(p)(given, *operands, **params)
        if back is Zero or type(back) is Zero:
            back = [None] * len(args)
        return tuple(map(from_cotangent, back, args))

    def vmap(size: int, mapped: Any, *args: Any, **params: Any) -> Any:
        axes = [0 if m else None for m in mapped]
        outs, varies = call_batched(p, size, args, axes, params)
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
