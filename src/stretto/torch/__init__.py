"""Trained PyTorch modules, here: ``from_torch``; and what is here, in PyTorch: ``to_torch``.

``importing`` makes modules of PyTorch's · ``capture`` has PyTorch export one, and ``likeness`` says
which need no export of their own · ``held``, ``modes`` and ``state`` (by ``holdings`` and
``sameness``) see to what Python holds beside parameters and buffers · ``graph``, ``structure``,
``signature``, ``program``: the export as plain data · ``run`` interprets it with the functions of
``table``, a file a family · ``module``: the module that holds its arrays · ``saving``: files of
those · ``statistics``: batch normalisation as plain means · ``weights``: state dictionaries alone.

``exporting`` makes a PyTorch module of what is here · ``hosting``: its class, and what autograd
sees · ``halves``: its two passes, compiled · ``crossing``: tensors as arrays, and the way back.

Only ``capture``, ``crossing``, ``held``, ``holdings``, ``hosting``, ``likeness``, ``modes``,
``sameness`` and ``state`` import PyTorch.
"""

from stretto._engine.core.lazy import imports_on_demand

with imports_on_demand(__name__):
    from stretto.torch.exporting import to_torch as to_torch
    from stretto.torch.importing import from_torch as from_torch
    from stretto.torch.module import ImportedModule as ImportedModule, Part as Part
    from stretto.torch.saving import load as load, save as save
    from stretto.torch.weights import (
        from_state_dict as from_state_dict,
        to_state_dict as to_state_dict,
    )
