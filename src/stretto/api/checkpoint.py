"""``checkpoint``: derivatives that compute values again instead of keeping them.

Layer 7 (api). What may be kept is told in ``control/policies``, how it is done in
``control/checkpoint``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from stretto.api.arguments import as_values, leaf_names, name_of, values_of_tree, without_float0
from stretto.control import policies as checkpoint_policies
from stretto.control.checkpoint import Checkpoint
from stretto.core import tree
from stretto.core.boundary import boundary
from stretto.core.recorder import record

__all__ = ["checkpoint", "checkpoint_policies", "remat"]


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: checkpoint_policies.Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """The function ``fun``, whose derivatives keep its arguments and compute the rest again.

    Values are the same. Run backwards, a derivative needs values of the way there; those of ``fun``
    are computed anew when their turn comes, in the memory that the next such function uses again:
    some more work, much less memory. Also called ``remat``.

    Parameters: ``policy(primitive, *types)`` says whether the results of an operation on operands
    of these types may be kept all the same: one of ``stretto.checkpoint_policies``, whose page says
    what it is asked, or None, to keep nothing. ``prevent_cse`` keeps the compiler from finding that
    the values were there already; around the body of a ``scan``, where it cannot find that, False
    is a little faster. ``static_argnums`` are positions of arguments that ``fun`` is given as they
    are, and that must be hashable. Arrays that ``fun`` takes from outside are kept, like arguments.

    Raises ``TypeError`` for a ``fun`` or a ``policy`` that cannot be called, a ``prevent_cse`` that
    is no bool, or an argument that is no array; ``ValueError`` for a position that is not there, or
    a static argument that is not hashable.

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
    name, several = name_of(fun), _positions(static_argnums)

    @functools.wraps(fun, updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        with boundary:
            fixed = _static(several, args, name)
            places = [i for i in range(len(args)) if i not in fixed]
            leaves, structure = tree.flatten(([args[i] for i in places], kwargs))

            def names() -> list[str]:
                return leaf_names(
                    fun, [() if i in fixed else a for i, a in enumerate(args)], kwargs
                )

            values = as_values(leaves, f"checkpoint of {name}", names)

            def flat(*given: Any) -> Any:
                positional, named = tree.unflatten(structure, given)
                everything = fixed | dict(zip(places, positional, strict=True))
                result = fun(*[everything[i] for i in range(len(args))], **named)
                return values_of_tree(without_float0(result), name, "the result")

            program, out, captured = record(flat, [v.type for v in values], names(), name)
            outs = Checkpoint(program, policy, prevent_cse)(*values, *captured)
            return tree.unflatten(out, outs)

    return checkpointed


remat = checkpoint


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _positions(static_argnums: Any) -> tuple[int, ...]:
    several = (static_argnums,) if hasattr(static_argnums, "__index__") else static_argnums
    try:
        return tuple([operator.index(i) for i in several])
    except TypeError:
        raise TypeError(
            f"checkpoint: static_argnums must be an int or a sequence of ints, got "
            f"{static_argnums!r}"
        ) from None


def _static(places: Sequence[int], args: Sequence[Any], name: str) -> dict[int, Any]:
    """The static arguments, by position from the front."""
    fixed = {}
    for i in places:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"checkpoint: static_argnums names argument {i}, but {name} was called with "
                f"{len(args)} positional arguments"
            )
        value = args[i % len(args)]
        if not _hashable(value):
            raise ValueError(
                f"checkpoint: static argument {i} of {name} must be hashable, got "
                f"{type(value).__name__}; leave it out of static_argnums if it holds arrays"
            )
        fixed[i % len(args)] = value
    return fixed
