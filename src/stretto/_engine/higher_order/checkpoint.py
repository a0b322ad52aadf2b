"""Checkpoints: a call whose derivative computes values again instead of keeping them.

A reverse derivative needs values from the forward pass. An ordinary call keeps them; a checkpoint
keeps its arguments and what its policy allows, and computes the rest again, in the same operation
as the backward pass.

A policy, of which ``stretto.checkpoint_policies`` has some, is a function
``policy(primitive, *types) -> bool``. ``checkpoint`` calls it for each operation of the forward
pass whose results a derivative may need. ``primitive`` is the operation (a
``core.primitive.Primitive``, with its static parameters as attributes), ``types`` are the types of
its operands, and the answer says whether its outputs may be kept. What is not kept is computed
again. A nested ``jit`` is not one operation: the policy is called for those that it consists of. A
loop, a branch or a checkpoint inside is one operation. The policy is not called for operations
without operands, which cost nothing to repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.core.config import settings
from stretto._engine.core.functions import described
from stretto._engine.core.primitive import Primitive, observable
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import Call
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.identities import Name


class Checkpoint(Call):
    """Apply a program; derivatives keep only those values that ``policy`` allows (None: none).

    ``again`` marks the program of a derivative, which begins by computing values again. With
    ``prevent_cse`` the compiler must leave that a call of its own, which starts when all operands
    are there, including the cotangents. Otherwise it would notice that the forward pass has
    computed these values already, and keep them; or, behind a mere barrier, compute them again too
    early.
    """

    policy: Policy | None = None
    prevent_cse: bool = True
    again: bool = False

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Interpret: unlike ``jit``, a checkpoint does not ask to be compiled."""
        return False

    def of(self, program: Program) -> Checkpoint:
        """Return a checkpoint of another program."""
        return Checkpoint(program, self.policy, self.prevent_cse, self.again)

    def inlined(self) -> Program | None:
        """Return the program; None if it begins by computing again what must stay separate."""
        return None if self.again else self.program

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the parameters, with the policy's name in place of the policy."""
        parameters = dict(super().parameters())
        if self.policy is not None:
            parameters["policy"] = getattr(self.policy, "__name__", type(self.policy).__name__)
        return list(parameters.items())

    def lower(self, b: Any, *operands: Any) -> Any:
        """Write the program in place, or as a call that the compiler must not inline."""
        if self.again and self.prevent_cse:
            return b.call(self.program, operands, apart=True)
        return b.program(self.program, operands)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the values with what is kept, and an operation for the rest and the tangents.

        y = f(x), dy = J(r(x)) dx, with residuals r, becomes y, s = f'(x), dy = J(r'(x, s)) dx
        where s is what is kept. Run backwards that is a checkpoint, too: x' = J(r'(x, s))ᵀ y'.
        """
        parts = _in_two(self.program, self.policy, tuple(t is not None for t in tangents))
        outs = self.of(parts.forward)(*primals)
        count = len(parts.active_out)
        douts = iter(())
        if any(parts.active_out):
            known = [(primals if own else outs)[i] for own, i in parts.known]
            again = Checkpoint(parts.linear, self.policy, self.prevent_cse, parts.again)
            douts = iter(apply_linear(again, *known, *(t for t in tangents if t is not None)))
        return outs[:count], [next(douts) if m else None for m in parts.active_out]


class _Parts(NamedTuple):
    """A program split at what is kept."""

    forward: Program
    """Computes the program's outputs, then what else is kept."""
    linear: Program
    """Maps known values, then the tangents of active inputs, to those of active outputs."""
    known: tuple[tuple[bool, int], ...]
    """Says where each known value is: among the inputs of ``forward`` (True) or its outputs, and at
    which position."""
    again: bool
    """True if ``linear`` computes anything again."""
    active_out: tuple[bool, ...]


def _in_two(program: Program, policy: Policy | None, active: tuple[bool, ...]) -> _Parts:
    """Split the program at what the policy allows to keep, for tangents of the active inputs."""
    key = ("checkpoint", policy, active, settings.key)
    if key not in program.cache:
        program.cache[key] = _split(program, policy, active)
    return program.cache[key]


def _split(program: Program, policy: Policy | None, active: tuple[bool, ...]) -> _Parts:
    parts = linearize_program(program, active)
    primal, count = parts.primal, len(parts.active_out)
    if policy is not None or observable(primal.effects):
        primal = _without_calls(primal)
    residuals = primal.outputs[count:]
    kept = {v for e in primal.equations if _keep(policy, e) for v in e.outputs}

    needed = {a for a in residuals if type(a) is Var}
    again: list[Equation] = []
    for equation in reversed(primal.equations):
        if any([v in needed and v not in kept for v in equation.outputs]):
            again.append(equation)
            needed.update([a for a in equation.inputs if type(a) is Var])

    saved = [v for e in primal.equations for v in e.outputs if v in kept and v in needed]
    outputs = list(primal.outputs[:count])
    outputs += [v for v in saved if v not in outputs]
    forward = drop_dead(Program(primal.inputs, primal.equations, outputs, program.name))
    positions = {v: (False, outputs.index(v)) for v in saved}
    positions |= {v: (True, i) for i, v in enumerate(primal.inputs) if v in needed}
    residual_program = Program(positions, reversed(again), residuals)

    def linear(*values: Any) -> Any:
        known, moving = values[: len(positions)], values[len(positions) :]
        return evaluate(parts.linear, [*moving, *evaluate(residual_program, known)]), None

    moving = parts.linear.in_types[: sum(active)]
    types = [*(v.type for v in positions), *moving]
    linear_program, _ = record_closed(linear, types, parts.linear.name)
    return _Parts(forward, linear_program, tuple(positions.values()), bool(again), parts.active_out)


def _keep(policy: Policy | None, equation: Equation) -> bool:
    """Say if all outputs of the equation are kept.

    Operations with an observable effect must not run twice, so their results always are. Those
    without operands cost nothing to compute again, so their results never are.
    """
    if observable(equation.primitive.effects):
        return True
    if policy is None or not equation.inputs:
        return False
    return bool(policy(equation.primitive, *[a.type for a in equation.inputs]))


def _without_calls(program: Program) -> Program:
    """Return the program with its calls inlined."""
    if not any([type(e.primitive) is Call for e in program.equations]):
        return program
    equations: list[Equation] = []
    renamed: dict[Atom, Atom] = {}

    def write(equation: Equation, names: dict[Atom, Atom]) -> None:
        inputs = [names.get(a, a) for a in equation.inputs]
        primitive = equation.primitive
        if type(primitive) is Call:
            inner: dict[Atom, Atom] = dict(zip(primitive.program.inputs, inputs, strict=True))
            for e in primitive.program.equations:
                write(e, inner)
            outs = [inner.get(a, a) for a in primitive.program.outputs]
            names.update(zip(equation.outputs, outs, strict=True))
        else:
            outputs = [Var(v.type) for v in equation.outputs]
            names.update(zip(equation.outputs, outputs, strict=True))
            equations.append(Equation(primitive, inputs, outputs, equation.position))

    for equation in program.equations:
        write(equation, renamed)
    outputs = [renamed.get(a, a) for a in program.outputs]
    return Program(program.inputs, equations, outputs, program.name)


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
    return _made(policy, "save_from_both_policies", (policy_1, policy_2), names)


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

    return _made(policy, caller, names, [*map(repr, names)])


def _made(policy: Any, maker: str, parts: tuple[Any, ...], words: Sequence[str]) -> Policy:
    """Return the policy, with what files write of it: the function that made it, and of what."""
    policy.__name__ = f"{maker}({', '.join(words)})"
    policy.made_by = maker, parts
    return policy
