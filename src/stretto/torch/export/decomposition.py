"""The exported program in operations that are in the table, and what of it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export import ExportedProgram  # pyright: ignore[reportMissingImports]

from stretto.torch.table import TABLE
from stretto.torch.weights import merge_inputs, sharing

_CHECKS = {
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_linalg_check_errors",
    "sym_constrain_range",
}
"""Operations that check what PyTorch assumed of its example, and have no result."""

_EFFECT = torch.ops.higher_order.with_effects

_SHARED = "expected compiled_fn to be GraphModule"
"""How PyTorch's error begins for a program that writes to memory which several inputs share."""


def decomposed(
    exported: ExportedProgram, decompositions: Callable[[], dict[Any, Any]]
) -> ExportedProgram:
    """The program in operations that are in the table, each tensor once among its inputs.

    Decomposing takes PyTorch two passes over the program, one and a half times what the export
    took, so it is left out where each operation is in the table: none there writes in place.

    Raises ``NotImplementedError`` where it writes to memory that several tensors share.
    """
    merge_inputs(exported)
    if _is_in_table(exported.graph_module):
        return exported
    try:
        return exported.run_decompositions(decompositions())
    except AssertionError as error:
        if not str(error).startswith(_SHARED):
            raise
        pairs = sharing({**exported.state_dict, **exported.constants})
        named = ", ".join([f"{first} and {second}" for first, second in pairs])
        raise NotImplementedError(
            f"from_torch: the module writes to a tensor that shares its memory with another "
            f"({named or 'among its arguments'}); arrays never share what is written: keep one of "
            f"them, and compute the other from it in forward"
        ) from error


def _is_in_table(module: torch.fx.GraphModule) -> bool:
    """Whether a program has operations of the table alone, and calls no other graph."""
    called = [node for node in module.graph.nodes if node.op not in ("placeholder", "output")]
    return all([node.op == "call_function" and _is_plain(node.target) for node in called])


def _is_plain(target: Any) -> bool:
    if isinstance(target, torch._ops.OperatorBase):
        aten = isinstance(target, torch._ops.OpOverload) and target.namespace == "aten"
        return aten and (name_of(target) in TABLE or is_check(target))
    return name_of(target) in TABLE


def is_check(target: Any) -> bool:
    """Whether an operation only checks what PyTorch assumed of its example."""
    return getattr(target, "_opname", "") in _CHECKS


def check_effects(nodes: Sequence[torch.fx.Node]) -> None:
    """Raise ``NotImplementedError`` for an operation that has an effect beside its result."""
    for node in nodes:
        if node.target is _EFFECT:
            _check_effect(node)


def _check_effect(node: torch.fx.Node) -> None:
    operation: Any = node.args[1]
    if not is_check(operation) and operation._opname != "_print":
        raise NotImplementedError(
            f"from_torch: {operation}, in {place_of(node)}, has an effect beside its result, which "
            f"no program here has"
        )


def name_of(target: Any) -> str:
    """The name of an operation in the table."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return target.name()
    return f"{target.__module__.removeprefix('_')}.{target.__name__}"


def place_of(node: torch.fx.Node) -> str:
    """The module, and the line in it, that a node comes from."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    path, kind = stack[-1] if stack else ("", "")
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    files = [line.strip() for line in lines if line.strip().startswith("File ")]
    where = files[-1].removeprefix("File ") if files else ""
    name = kind if isinstance(kind, str) else kind.__qualname__
    module = f"{path or 'the module'} ({name.rpartition('.')[2]})" if name else path
    return ", ".join([part for part in (module, where) if part])
