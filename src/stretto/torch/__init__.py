"""Trained PyTorch modules, here: ``from_torch``; and what is here, in PyTorch: ``to_torch``.

``importing`` makes an ``ImportedModule`` (``imported_module``) of a module of PyTorch's,
``module_files`` writes it into files, and ``weights`` takes state dictionaries alone. The way of a
module:

1. ``export``: ``example_arguments`` asks whether it can come in, ``likeness`` which modules need no
   export of their own, and ``capture`` has PyTorch export it, with the ``constraints`` on sizes,
   the operations of the table (``decomposition``), and ``failure_reasons`` where that fails.
2. Meanwhile, ``trace`` stands in for what PyTorch cannot trace, ``python_state`` looks after what
   Python holds beside parameters and buffers, and ``gradients`` keeps the derivatives that the
   module gives by itself.
3. ``programs``: the export as plain data. Read ``torch_graph`` first, then ``structure``,
   ``signature``, ``symbolic_sizes`` and ``torch_program``; ``run_graph`` interprets it with the
   functions of ``table``, a file a family; ``graph_parts`` and ``mask_sizes`` make operations of
   parts of a graph, and ``buffers`` are what is written to and asked for.

The other way, ``hosted``: ``exporting`` makes a PyTorch module of what is here · ``hosting``: its
class, and what autograd sees · ``halves``: its two passes, compiled.

``crossing``: tensors as arrays, and the way back · ``source_lines``: a module's lines, for errors.

PyTorch is imported by these two, by ``hosting``, and by what is in ``export``, ``trace``,
``python_state`` (except ``user_containers``) and ``gradients``; nothing else needs it.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.torch.hosted.exporting import to_torch as to_torch
    from stretto.torch.importing import from_torch as from_torch
    from stretto.torch.imported_module import ImportedModule as ImportedModule, Part as Part
    from stretto.torch.module_files import load as load, save as save
    from stretto.torch.weights import (
        from_state_dict as from_state_dict,
        to_state_dict as to_state_dict,
    )
    from stretto.torch import crossing

exports(
    __name__,
    """
    .hosted.exporting: to_torch
    .importing: from_torch
    .imported_module: ImportedModule Part
    .module_files: load save
    .weights: from_state_dict to_state_dict
    """,
    extra="torch",
)
