"""Sparse tensors of a module, which are dense while it is exported and ever after.

PyTorch traces next to nothing of what it computes with sparse tensors. Their products, sums and
elements are those of dense ones, so these stand in for them: those that a module holds, and those
that it makes. What asks for the places of their elements is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportMissingImports]

from stretto.torch.crossing import dense

_WAY = (
    "sparse tensors are dense in an imported module, where all elements have a place: hold indices "
    "and values as tensors of their own"
)


@contextmanager
def held_densely(module: torch.nn.Module) -> Iterator[bool]:
    """Let a module hold dense tensors in the place of its sparse ones; gives whether it has any.

    Raises ``NotImplementedError`` for a sparse parameter.
    """
    for name, parameter in module.named_parameters():
        if parameter.layout is not torch.strided:
            raise NotImplementedError(
                f"from_torch: the parameter {name} is of layout {parameter.layout}, and its "
                f"gradient would be of its own places alone: hold its values as a dense parameter, "
                f"and make torch.sparse_coo_tensor(indices, values, size) of them in forward"
            )
    changed = [
        (holder, name, tensor)
        for part in module.modules()
        for holder in (part._buffers, part.__dict__)
        for name, tensor in holder.items()
        if isinstance(tensor, torch.Tensor) and tensor.layout is not torch.strided
    ]
    for holder, name, tensor in changed:
        holder[name] = dense(tensor)
    try:
        yield bool(changed)
    finally:
        for holder, name, tensor in changed:
            holder[name] = tensor


def all_dense(tree: Any) -> Any:
    """The tensors of a tree, dense ones in the place of sparse ones."""
    return pytree.tree_map(lambda x: dense(x) if isinstance(x, torch.Tensor) else x, tree)


class Densely:
    """Gives a dense tensor for a sparse one, always the same, and everything else as it is."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, x: Any) -> Any:
        """The argument of a function, or a list of arguments, with dense tensors."""
        if type(x) is list or type(x) is tuple:
            return type(x)(map(self, x))
        if not isinstance(x, torch.Tensor) or x.layout is torch.strided:
            return x
        if id(x) not in self._known:
            with _disable_current_modes():  # a function's own constant, which is not traced
                self._known[id(x)] = x, dense(x)
        return self._known[id(x)][1]


def check_layout(function: Any, frame: FrameType | None) -> None:
    """Raise ``NotImplementedError`` where code that is not PyTorch's, nor ours, asks for a layout.

    ``frame`` is what called the function, perhaps behind modes of PyTorch's exporter.
    """
    if function in _OF_LAYOUTS:
        while frame is not None and frame.f_code.co_name == "__torch_function__":
            frame = frame.f_back
        name = "torch" if frame is None else frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in ("torch", "stretto"):
            _OF_LAYOUTS[function]()


def _of_places(
    indices: Any, values: Any, size: Sequence[int] | None = None, **how: Any
) -> torch.Tensor:
    """``torch.sparse_coo_tensor``: values are added up where places repeat."""
    if size is None:
        raise NotImplementedError(
            "from_torch: torch.sparse_coo_tensor without a size has one that depends on values: "
            "give it the size"
        )
    values = torch.as_tensor(values, dtype=how.get("dtype"))
    rows = tuple(torch.as_tensor(indices).unbind(0))
    return values.new_zeros(tuple(size)).index_put(rows, values, accumulate=True)


def _of_rows(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **how: Any
) -> torch.Tensor:
    """``torch.sparse_csr_tensor`` of a matrix."""
    if size is None or len(size) != 2:
        raise NotImplementedError(
            "from_torch: torch.sparse_csr_tensor is taken for matrices, with their size"
        )
    columns = torch.as_tensor(col_indices)
    ends = torch.as_tensor(crow_indices)[1:]
    rows = torch.bucketize(torch.arange(columns.shape[0]), ends, right=True)
    return _of_places(torch.stack([rows, columns]), values, size, **how)


def _product(a: torch.Tensor, b: torch.Tensor, reduce: str | None = None) -> torch.Tensor:
    if reduce not in (None, "sum"):
        raise NotImplementedError(f"from_torch: torch.sparse.mm with reduce={reduce!r}: {_WAY}")
    return torch.mm(a, b)


def _sum(x: torch.Tensor, dim: Any = None, dtype: Any = None) -> torch.Tensor:
    return torch.sum(x, dtype=dtype) if dim is None else torch.sum(x, dim, dtype=dtype)


def _same(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return x


def _in_dtype(x: torch.Tensor, dtype: Any = None, **_: Any) -> torch.Tensor:
    return x if dtype is None else x.to(dtype)


def _refused(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"from_torch: {name} is not supported: {_WAY}")

    return refused


_TENSOR = torch.Tensor

CALLED: dict[Any, Callable[..., Any]] = {
    torch.sparse_coo_tensor: _of_places,
    torch.sparse_csr_tensor: _of_rows,
    torch.sparse.mm: _product,
    torch.spmm: _product,
    torch.sparse.addmm: torch.addmm,
    torch._sparse_sum: _sum,
    _TENSOR.coalesce: _same,
    _TENSOR.is_coalesced: lambda x: True,
    _TENSOR.to_dense: _in_dtype,
    _TENSOR.to_sparse: _same,
    _TENSOR.to_sparse_coo: _same,
    _TENSOR.to_sparse_csr: _same,
    **{
        getattr(torch.sparse, name): _refused(f"torch.sparse.{name}")
        for name in ("softmax", "log_softmax", "sampled_addmm", "spdiags")
    },
    **{
        getattr(_TENSOR, name): _refused(f"Tensor.{name}")
        for name in (
            "_indices",
            "_nnz",
            "_values",
            "ccol_indices",
            "col_indices",
            "crow_indices",
            "dense_dim",
            "indices",
            "row_indices",
            "sparse_dim",
            "sparse_mask",
            "values",
        )
    },
}
"""For functions of sparse tensors those of dense ones."""

_OF_LAYOUTS: dict[Any, Callable[..., Any]] = {
    getattr(_TENSOR, name).__get__: _refused(f"Tensor.{name}, where a module holds sparse tensors,")
    for name in ("is_sparse", "is_sparse_csr", "layout")
}
"""What tells sparse tensors from dense ones."""
