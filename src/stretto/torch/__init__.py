"""Trained PyTorch modules, here: ``from_torch``.

``importing`` makes modules of PyTorch's · ``capture`` has PyTorch export one, and ``likeness`` says
which need no export of their own; these and ``crossing`` alone import PyTorch · ``graph``,
``structure``, ``signature``, ``program``: the export as plain data · ``run`` interprets it with the
functions of ``table``, a file a family · ``module``: the module that holds its arrays ·
``saving``: files of those.
"""

from stretto._engine.core.lazy import imports_on_demand

with imports_on_demand(__name__):
    from stretto.torch.importing import from_torch as from_torch
    from stretto.torch.module import ImportedModule as ImportedModule, Part as Part
    from stretto.torch.saving import load as load, save as save
