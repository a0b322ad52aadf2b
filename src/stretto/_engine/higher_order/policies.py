"""Policies: which values a checkpoint keeps for the way back; ``stretto.checkpoint_policies``.

A policy is a function ``policy(primitive, *types) -> bool``. ``checkpoint`` calls it for each
operation of the forward pass whose results a derivative may need. ``primitive`` is the operation (a
``core.primitive.Primitive``, with its static parameters as attributes), ``types`` are the types of
its operands, and the answer says whether its outputs may be kept. What is not kept is computed
again. A nested ``jit`` is not one operation: the policy is called for those that it consists of. A
loop, a branch or a checkpoint inside is one operation. The policy is not called for operations
without operands, which cost nothing to repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from stretto._engine.core.descriptions import described
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.identities import Name

Policy: TypeAlias = Callable[..., bool]

_policy = described({"primitive": "the operation.", "*types": "the types of its operands."})
_of_names = described(
    {"*names_not_to_save": "the names.", "*names_which_can_be_saved": "the names."},
    "The policy.",
    "TypeError: a name is not a string.",
)


@_policy
def everything_saveable(primitive: Primitive, *types: ArrayType) -> bool:
    """Keep whatever derivatives need, as if there were no checkpoint.

    Returns:
        True.

    >>> import stretto as st, stretto.numpy as snp
    >>> f = st.checkpoint(snp.sin, policy=st.checkpoint_policies.everything_saveable)
    >>> float(st.grad(f)(0.0))
    1.0
    """
    return True


@_policy
def nothing_saveable(primitive: Primitive, *types: ArrayType) -> bool:
    """Keep the arguments only; what a checkpoint without a policy does.

    Returns:
        False.

    >>> import stretto as st, stretto.numpy as snp
    >>> f = st.checkpoint(snp.sin, policy=st.checkpoint_policies.nothing_saveable)
    >>> float(st.grad(f)(0.0))
    1.0
    """
    return False


@_policy
def dots_saveable(primitive: Primitive, *types: ArrayType) -> bool:
    """Keep the results of matrix products (``dot_general``) and of convolutions.

    Returns:
        Whether it is such a product or a convolution.

    >>> import stretto as st, stretto.numpy as snp
    >>> f = st.checkpoint(lambda w, x: snp.tanh(w @ x).sum(), policy=dots_saveable)
    >>> st.grad(f)(snp.zeros((1, 2)), snp.ones(2))
    Array([[1., 1.]], dtype=float32)
    """
    return isinstance(primitive, (DotGeneral, ConvGeneralDilated))


@_policy
def dots_with_no_batch_dims_saveable(primitive: Primitive, *types: ArrayType) -> bool:
    """Keep the results of matrix products without batch axes, which both operands share.

    Products of weights and activations are such. Products of activations with each other, as for
    the scores of attention, have examples or heads as batch axes, and are often large.

    Returns:
        Whether it is such a product.

    >>> import stretto as st, stretto.numpy as snp
    >>> policy = st.checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> f = st.checkpoint(lambda w, x: snp.tanh(w @ x).sum(), policy=policy)
    >>> st.grad(f)(snp.zeros((1, 2)), snp.ones(2))
    Array([[1., 1.]], dtype=float32)
    """
    return isinstance(primitive, DotGeneral) and not any(primitive.shared)


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


@_of_names
def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keep everything except values with one of these names.

    A name refers to the value that ``checkpoint_name`` returned. If the value that it was applied
    to is kept, computing the named one again costs nothing.

    >>> import stretto as st, stretto.numpy as snp
    >>> policy = st.checkpoint_policies.save_anything_except_these_names("wave")
    >>> f = st.checkpoint(lambda x: st.checkpoint_name(snp.sin(x), "wave") ** 2, policy=policy)
    >>> float(st.grad(f)(0.0))
    0.0
    """
    return _by_name(
        "save_anything_except_these_names",
        names_not_to_save,
        lambda label: label not in names_not_to_save,
    )


@_of_names
def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keep values that have a name, except these names.

    >>> import stretto as st, stretto.numpy as snp
    >>> policy = st.checkpoint_policies.save_any_names_but_these("other")
    >>> f = st.checkpoint(lambda x: st.checkpoint_name(snp.sin(x), "wave") ** 2, policy=policy)
    >>> float(st.grad(f)(0.0))
    0.0
    """
    return _by_name(
        "save_any_names_but_these",
        names_not_to_save,
        lambda label: label is not None and label not in names_not_to_save,
    )


@_of_names
def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keep the values with these names only.

    >>> import stretto as st, stretto.numpy as snp
    >>> policy = st.checkpoint_policies.save_only_these_names("wave")
    >>> f = st.checkpoint(lambda x: st.checkpoint_name(snp.sin(x), "wave") ** 2, policy=policy)
    >>> float(st.grad(f)(0.0))
    0.0
    """
    return _by_name(
        "save_only_these_names",
        names_which_can_be_saved,
        lambda label: label in names_which_can_be_saved,
    )


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what either policy keeps.

    Args:
        policy_1: a policy.
        policy_2: another.

    Returns:
        The policy.

    Raises:
        TypeError: one of them is not a function.

    >>> import stretto as st, stretto.numpy as snp
    >>> named = st.checkpoint_policies.save_only_these_names("wave")
    >>> policy = st.checkpoint_policies.save_from_both_policies(dots_saveable, named)
    >>> f = st.checkpoint(lambda x: st.checkpoint_name(snp.sin(x), "wave") ** 2, policy=policy)
    >>> float(st.grad(f)(0.0))
    0.0
    """

    def policy(primitive: Primitive, *types: ArrayType) -> bool:
        return bool(policy_1(primitive, *types) or policy_2(primitive, *types))

    for i, each in enumerate((policy_1, policy_2), 1):
        if not callable(each):
            raise TypeError(
                f"save_from_both_policies: policy_{i} must be a policy, a function "
                f"policy(primitive, *types) that returns a bool; got {type(each).__name__}"
            )
    names = [getattr(p, "__name__", type(p).__name__) for p in (policy_1, policy_2)]
    policy.__name__ = f"save_from_both_policies({', '.join(names)})"
    return policy


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> NoReturn:
    """Refuse: see ``save_and_offload_only_these_names``.

    Args:
        offload_src: the memory to move values from.
        offload_dst: the memory to move values to.

    Raises:
        NotImplementedError: always.

    >>> import stretto as st
    >>> st.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    Traceback (most recent call last):
    NotImplementedError: offload_dot_with_no_batch_dims: ...
    """
    raise NotImplementedError(
        _NO_OFFLOADING.format("offload_dot_with_no_batch_dims", "dots_with_no_batch_dims_saveable")
    )


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Any,
    names_which_can_be_offloaded: Any,
    offload_src: str,
    offload_dst: str,
) -> NoReturn:
    """Refuse: an array lies in one memory here, so there is none to move values to.

    To keep the values instead would take just the memory that was to be saved.

    Args:
        names_which_can_be_saved: the names of values to keep.
        names_which_can_be_offloaded: the names of values to move.
        offload_src: the memory to move values from.
        offload_dst: the memory to move values to.

    Raises:
        NotImplementedError: always.

    >>> import stretto as st
    >>> st.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=[],
    ...     names_which_can_be_offloaded=["x"],
    ...     offload_src="device",
    ...     offload_dst="pinned_host",
    ... )
    Traceback (most recent call last):
    NotImplementedError: save_and_offload_only_these_names: ...
    """
    raise NotImplementedError(
        _NO_OFFLOADING.format("save_and_offload_only_these_names", "save_only_these_names")
    )


_NO_OFFLOADING = (
    "{}: arrays are in one memory, and there is no other to offload values to; use {} to keep "
    "them, or leave them out to have them computed again"
)


def _by_name(caller: str, names: tuple[Any, ...], keeps: Callable[[str | None], bool]) -> Policy:
    """Return the policy that asks ``keeps`` about a value's name, or None for one that has none.

    It is named after the call that made it, for printed programs and messages.
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{caller}: names must be strings, each a separate argument; got "
                f"{type(name).__name__}"
            )

    def policy(primitive: Primitive, *types: ArrayType) -> bool:
        return keeps(primitive.label if isinstance(primitive, Name) else None)

    policy.__name__ = f"{caller}({', '.join(map(repr, names))})"
    return policy
