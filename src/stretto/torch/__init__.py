"""Trained PyTorch modules, here: ``from_torch``; and what is here, in PyTorch: ``to_torch``.

``importing`` makes an ``ImportedModule`` (``imported_module``, with its files) of a module of
PyTorch's, and ``weights`` takes state dictionaries alone. The way of a module:

1. ``export``: ``before_export`` asks whether it can come in, and which modules need no export of
   their own. ``capture`` has PyTorch export it (``attempts``, with conditions on sizes), in the
   operations of the table (``exported_graphs``); ``failures`` says why that fails.
2. Meanwhile, ``trace`` stands in for what PyTorch cannot trace, and keeps the derivatives that the
   module gives by itself (``derivative_marks``); ``python_state`` looks after what Python holds
   beside parameters and buffers.
3. ``programs``: the export as plain data. Read ``torch_graph`` first, then ``signature``;
   ``torch_program`` interprets it with the functions of ``table``, a file a family; ``subgraphs``
   makes operations of parts of a graph, and ``buffers`` are what is written to and asked for.

The other way: ``exporting`` makes a PyTorch module of what is here, with its two passes compiled,
and ``hosting`` has its class, and what autograd sees. ``crossing`` takes tensors as arrays, and
back.

PyTorch is imported by these two, and by what is in ``export``, ``trace`` and ``python_state``;
nothing else needs it.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.torch.exporting import to_torch as to_torch
    from stretto.torch.importing import from_torch as from_torch
    from stretto.torch.imported_module import ImportedModule as ImportedModule, Part as Part
    from stretto.torch.imported_module import load as load, save as save
    from stretto.torch.importing import (
        from_state_dict as from_state_dict,
        to_state_dict as to_state_dict,
    )
    from stretto.torch import crossing, hosting

exports(
    __name__,
    """
    .exporting: to_torch
    .importing: from_torch from_state_dict to_state_dict
    .imported_module: ImportedModule Part load save
    """,
    extra="torch",
)
