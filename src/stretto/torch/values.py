"""Operations whose results depend on values in a way that no compiled program has, and ways out.

A program is compiled for the sizes of its arguments, so how many elements a result has must follow
from these. The ways out are written in PyTorch's words, as they go into its module.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from stretto.torch.graph import Graph, Node, Ref, TensorType

__all__ = ["dependent"]

_MASK = (
    "keep all elements and choose among them: torch.where(mask, x, 0), a sum as (x * mask).sum(), "
    "a mean as that divided by mask.sum(), or torch.topk for a number of elements that is known"
)
_FIXED = "If the mask never changes, index by the places where it is true, found in __init__"
_NUMBER = (
    "it makes a number of Python of a tensor's value (.item(), float(), int(), .tolist()): keep it "
    "a tensor, or make the number an argument or a buffer, which becomes part of the program"
)
_COUNTS = "give the number of classes, or count by (x[:, None] == torch.arange(n)).sum(0)"

_INDEX = f"a boolean index keeps as many elements as are true; {_MASK}. {_FIXED}"

_OF_VALUES = {
    "aten.index.Tensor": _INDEX,
    "aten._unsafe_index.Tensor": _INDEX,
    "aten.nonzero.default": f"it gives as many places as are not zero; {_MASK}",
    "aten.masked_select.default": f"it keeps as many elements as are true; {_MASK}",
    "aten.bincount.default": f"it gives as many counts as the greatest value says; {_COUNTS}",
    "aten.one_hot.default": "it has as many classes as the greatest value says; give num_classes",
    "aten.repeat_interleave.Tensor": "it repeats as often as the values say: give "
    "repeat_interleave the total, output_size=, or numbers of Python, or pad to the most that "
    "there may be",
    "aten._local_scalar_dense.default": _NUMBER,
    "aten.item.default": _NUMBER,
}
"""For an operation why it is not compiled, if it is one that can depend on values."""

_INDEXED = ("aten.index.Tensor", "aten._unsafe_index.Tensor")
_COPIES = (
    "aten.alias.default",
    "aten.clone.default",
    "aten.detach.default",
    "aten.lift_fresh_copy.default",
)


def dependent(graph: Graph, known: Container[str]) -> Iterator[tuple[Node, str]]:
    """The operations of a graph whose sizes or numbers depend on values, each with the way out.

    Of those that are ``known``, since they have a function here, these are the ones for which
    PyTorch found sizes that only a run can tell, and no operation before has, or took such a size
    to be one that the module asks for; by a constant index they are known after all.
    """
    constant = {k for k, x in enumerate(graph.inputs) if x.kind == "constant"}
    types = [x.type for x in graph.inputs]
    found = {name for x in graph.inputs for name in _open_sizes(x.type)}
    for k, node in enumerate(graph.nodes, len(graph.inputs)):
        if node.op in _COPIES and _is_in(constant, node.args[0]):
            constant.add(k)
        words = _OF_VALUES.get(node.op)
        indices = node.args[1] if node.op in _INDEXED else None
        if indices and all([i is None or _is_in(constant, i) for i in indices]):
            words = None
        masked = any([_is_mask(types, i) for i in indices or ()])
        new = {name for type in node.types for name in _open_sizes(type)} - found
        if words and (node.op not in known or new or masked):
            yield node, words
        found |= new
        types.append(node.type)
    for part in graph.subgraphs:
        yield from dependent(part, known)


def _is_in(indices: Container[int], value: Any) -> bool:
    return isinstance(value, Ref) and value.index in indices


def _is_mask(types: list[TensorType | None], index: Any) -> bool:
    type = types[index.index] if isinstance(index, Ref) else None
    return type is not None and type.dtype == "bool"


def _open_sizes(type: TensorType | None) -> list[str]:
    """The sizes that PyTorch numbers u0, u1, ..., since values tell them."""
    names = [n for n in type.shape if isinstance(n, str)] if type else []
    return [name for name in names if name[0] == "u" and name[1:].isdecimal()]
