"""``checkpoint``: derivatives that compute values again instead of keeping them.

``higher_order/checkpoint`` has what may be kept, and how it is done.

``print_saved_residuals`` shows what a reverse derivative keeps from the forward pass: of use when
choosing what a ``checkpoint`` is to keep.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from stretto._engine.api import argument_leaves
from stretto._engine.api.jit.signature import ArgumentSet, argument_set, others, rejoin
from stretto._engine.api.varying_sizes.sizes import equal_lengths, share_lengths
from stretto._engine.autodiff.linearize import linearize_flat
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.cells import giving, write_all
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.recorder import record
from stretto._engine.higher_order.checkpoint import Checkpoint, Policy
from stretto._engine.higher_order.refs import Apart

P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
) -> Callable[P, R]:
    """Make derivatives of ``fun`` keep only its arguments, and compute the rest again.

    Values are the same. A reverse derivative needs values from the forward pass; those inside
    ``fun`` are computed again when they are needed, and their memory is free again afterwards: some
    more work, much less memory.

    Args:
        fun: a function of trees of arrays; arrays that it captures are kept, too.
        prevent_cse: whether the compiler is prevented from reusing the values of the forward pass;
            around the body of a ``scan``, where it could not, False is a little faster.
        policy: ``policy(primitive, *types)`` says whether the results of an operation on operands
            of these types may be kept after all: one of ``stretto.checkpoint_policies``, or None,
            to keep nothing.
        static_argnums: positions of arguments that ``fun`` is given as they are, whatever they are.
        static_argnames: the same, by name.

    Returns:
        A function of the same arguments and values.

    Raises:
        TypeError: ``fun`` or ``policy`` cannot be called, ``policy`` is not hashable, or
            ``prevent_cse`` is not a bool; or, in a call, an argument is not a tree of arrays.
        ValueError: a position or name is not there; or, in a call, a static argument is traced.

    Source: Chen, Xu, Zhang, Guestrin, "Training deep nets with sublinear memory cost", 2016.

    >>> import stretto as st, stretto.numpy as snp
    >>> f = st.checkpoint(lambda x: snp.sin(snp.sin(x)))
    >>> print(st.make_graph(st.value_and_grad(f))(1.0))
    { value_and_grad_function(a:f32*[])
      b:f32*[] = checkpoint a [policy=None, prevent_cse=True, again=False]
        program:
          { function(a:f32*[])
            b:f32*[] = sin a
            c:f32*[] = sin b
            return c }
      c:f32*[] = checkpoint a 1.0 [policy=None, prevent_cse=True, again=True]
        program:
          { transpose_linear_function(a:f32*[], b:f32*[])
            c:f32*[] = sin a
            d:f32*[] = cos a
            e:f32*[] = cos c
            f:f32*[] = mul b e
            g:f32*[] = mul f d
            return g }
      return b, c }
    """
    if not callable(fun):
        raise TypeError(f"checkpoint: expected a function, got {type(fun).__name__}")
    if not (policy is None or callable(policy)):
        raise TypeError(
            f"checkpoint: policy must be None or a function policy(primitive, *types) that returns "
            f"a bool, such as those of stretto.checkpoint_policies; got {type(policy).__name__}"
        )
    if not _hashable(policy):
        raise TypeError(f"checkpoint: policy must be hashable, got {type(policy).__name__}")
    if not isinstance(prevent_cse, bool):
        raise TypeError(f"checkpoint: prevent_cse must be a bool, got {type(prevent_cse).__name__}")
    name = name_of(fun)
    function: Callable[..., Any] = fun
    static = argument_set(fun, static_argnums, static_argnames, "static", "checkpoint")

    @functools.wraps(fun, updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        with boundary:
            fixed = _fixed(static, args, kwargs, name)
            positional, named = others(fixed, args, kwargs)
            all_leaves, structure = tree.flatten((positional, named))
            apart = Apart(all_leaves)

            def names() -> list[str]:
                moving = [() if i in fixed else a for i, a in enumerate(args)]
                return apart.of(argument_leaves.leaf_names(fun, moving, named))

            values = argument_leaves.as_values(apart.leaves, f"checkpoint of {name}", names)
            pairs = equal_lengths(structure, apart.together(values))
            written: list[Any] = []
            writing = giving(function, written)

            def flat(*leaves: Any) -> Any:
                own = tree.unflatten(structure, share_lengths(apart.together(leaves), pairs))
                all_args, all_named = rejoin(fixed, *own)
                result, values = writing(*all_args, **all_named)
                result = argument_leaves.without_float0(result)
                return argument_leaves.values_of_tree(
                    (result, values) if written else result, name, "the result"
                )

            program, out, captured = record(flat, [v.type for v in values], names(), name)
            outs = Checkpoint(program, policy, prevent_cse)(*values, *captured)
            result = tree.unflatten(out, outs)
            if not written:
                return result
            write_all(written, result[1])
            return result[0]

    return checkpointed


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _fixed(static: ArgumentSet, args: Sequence[Any], kwargs: Any, name: str) -> dict[Any, Any]:
    """Return the static arguments, by position or name; raises ``ValueError`` for a traced one."""
    fixed = {p: args[p] if isinstance(p, int) else kwargs[p] for p in static.present(args, kwargs)}
    for which, value in fixed.items():
        if isinstance(value, Tracer):
            raise ValueError(
                f"checkpoint: static argument {which!r} of {name} is traced: {value.origin()}; "
                f"leave it out of static_argnums and static_argnames"
            )
    return fixed


def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the type of each value that ``vjp`` of ``fun`` keeps, and what it was computed by.

    Args:
        fun: a function of trees of arrays.
        *args: its arguments.
        **kwargs: the same, by name.

    Raises:
        TypeError: an argument is not a tree of arrays.

    >>> import stretto as st, stretto.numpy as snp
    >>> def loss(x, w):
    ...     return snp.dot(snp.sin(x), w)
    >>> st.debug.print_saved_residuals(loss, snp.ones(3), snp.ones(3))
    float32[3] computed by cos at ... (loss) from the argument x
    float32[3] the argument w
    float32[3] computed by sin at ... (loss) from the argument x
    """
    lines: list[str] = []
    caller = name_of(fun)

    def flat(*values: Any) -> Any:
        function = argument_leaves.Flat(lambda a, k: fun(*a, **k), structure, False, caller)
        outs, linear = linearize_flat(
            function, values, [argument_leaves.is_active(v) for v in values]
        )
        for kept in linear.residuals:
            origin = kept.origin() if isinstance(kept, Tracer) else "a captured array"
            lines.append(f"{kept.type} {origin}")
        return outs, None

    with boundary:
        leaves, structure = tree.flatten((args, kwargs))
        names = argument_leaves.LeafNames(fun, args, kwargs)
        values = argument_leaves.as_values(leaves, caller, lambda: names)
        record(flat, [v.type for v in values], names, caller)
    print(*lines, sep="\n")
