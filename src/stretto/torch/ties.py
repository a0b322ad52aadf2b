"""Tensors that a PyTorch module holds under several names, and what shares memory in part.

A shared submodule makes two inputs of its exported program out of one tensor, and PyTorch cannot
decompose a program that writes to one of them. Like ``capture`` this works on PyTorch's objects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["identity", "merge_inputs", "sharing"]


def identity(tensor: Any) -> tuple[Any, ...]:
    """What two names of one tensor have in common, and no two tensors.

    Tensors that are sparse or without elements have no memory to share, so each is itself alone.
    """
    if not tensor.numel() or str(tensor.layout) != "torch.strided":
        return (id(tensor),)
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def merge_inputs(exported: Any) -> None:
    """Keep one input of an exported program for all names of a tensor, in place."""
    signature = exported.graph_signature
    tensors = {**exported.constants, **exported.state_dict}
    placeholders = {x.name: x for x in exported.graph.nodes if x.op == "placeholder"}
    first, kept = {}, []
    for spec in signature.input_specs:
        tensor = tensors.get(spec.target) if spec.kind.name in ("PARAMETER", "BUFFER") else None
        if tensor is None:
            kept.append(spec)
            continue
        node = placeholders[spec.arg.name]
        same = first.setdefault((spec.kind, identity(tensor)), node)
        if same is node:
            kept.append(spec)
        else:
            node.replace_all_uses_with(same)
            exported.graph.erase_node(node)
    if len(kept) < len(signature.input_specs):
        exported._graph_signature = dataclasses.replace(signature, input_specs=kept)
        exported.graph_module.recompile()


def sharing(tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names of different tensors of which one begins in the memory of the other."""
    known: dict[Any, tuple[str, Any]] = {}
    for name, tensor in _with_memory(tensors.items()):
        other, its = known.setdefault(tensor.untyped_storage().data_ptr(), (name, tensor))
        if its is not tensor:
            yield other, name


def _with_memory(named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    return ((name, x) for name, x in named if hasattr(x, "untyped_storage") and x.numel())
