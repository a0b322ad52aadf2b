"""Trained PyTorch modules, here: ``from_torch``; and what is here, in PyTorch: ``to_torch``.

``importing`` makes modules of PyTorch's · ``examples`` asks whether one can come in, and takes its
example · ``capture`` has PyTorch export it, and ``likeness`` says which need no export of their own
· ``attempts``, ``constraints``, ``decomposing``, ``momenta``, ``nesting``, ``recurrent`` and
``ties`` are parts of that · ``substitutes``: what stands for what PyTorch cannot trace, from
``inner_transforms``, ``packed`` and ``stand_ins`` · ``hooks`` finds what the export loses,
``derivatives`` and ``functions`` leave ``marks`` of derivatives in the trace, ``backwards`` and
``writes`` make graphs of them · ``held``, ``modes`` and ``state`` (by ``holdings`` and
``sameness``): what Python holds beside parameters and buffers · ``fixed_numbers``: numbers of
Python that are made of buffers · ``quiet`` and ``reasons``: what is said meanwhile, and where it
fails · ``graph``, ``structure``, ``signature``, ``sizes``, ``program``: the export as plain data ·
``written``: what it writes into arguments · ``guards``: the buffers that it is made for ·
``parts`` and ``selections``: parts of a graph as operations, for derivatives and for what masks
select, by ``masks``, and by ``distinct`` for ``unique`` ·
``values``: what else depends on values · ``run`` interprets it with the functions of ``table``, a
file a family · ``module``: the module that holds its arrays · ``saving``: files of those ·
``statistics``: batch normalization as plain means · ``weights``: state dictionaries alone.

``exporting`` makes a PyTorch module of what is here · ``hosting``: its class, and what autograd
sees · ``halves``: its two passes, compiled · ``crossing``: tensors as arrays, and the way back.

Only ``attempts``, ``backwards``, ``capture``, ``constraints``, ``crossing``, ``decomposing``,
``densely``, ``derivatives``, ``examples``, ``fixed_numbers``, ``functions``, ``held``,
``holdings``, ``hooks``, ``hosting``, ``inner_transforms``, ``likeness``, ``marks``, ``modes``,
``momenta``, ``packed``, ``reasons``, ``recurrent``, ``sameness``, ``stand_ins``, ``state``,
``substitutes``, ``tracing`` and ``writes`` import PyTorch.
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
