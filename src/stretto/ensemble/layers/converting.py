"""``to_batch_ensemble``: a model that is there becomes a BatchEnsemble around its weights.

The layers are those of ``batch``.
"""

from __future__ import annotations

from stretto._engine.core.typing import Key
from stretto.ensemble.layers.batch import BatchEnsemble, around
from stretto.nn.attention import MultiheadAttention
from stretto.nn.convolution import Conv2d
from stretto.nn.linear import Linear
from stretto.nn.module import Module
from stretto.random.keys import checked, fold_in
from stretto.random.streams import next_key

__all__ = ["to_batch_ensemble"]


def to_batch_ensemble(
    model: Module, num_estimators: int, *, factors: str = "signs", key: Key | None = None
) -> Module:
    """Copy a model, with each ``Linear`` and ``Conv2d`` made a BatchEnsemble of it.

    Weights are shared; each member begins with the layer's bias and with factors of its own. The
    copy takes tiled inputs (``repeat_members``), and ``split_members`` separates its outputs.
    What ``MultiheadAttention`` holds, and classes derived from ``Linear`` and ``Conv2d``, stay.

    Args:
        model: a module.
        num_estimators: how many members.
        factors: how the factors begin, as for ``BatchEnsembleLinear``.
        key: a key; ``None`` draws from the ambient stream.

    Returns:
        The new module.

    Raises:
        TypeError: ``model`` is not a module.
        ValueError: it has no layer to replace.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.ensemble.layers import repeat_members, split_members, to_batch_ensemble
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> ensemble = to_batch_ensemble(model, 4, factors="normal", key=st.random.PRNGKey(0))
    >>> split_members(ensemble(repeat_members(st.numpy.ones((5, 8)), 4)), 4).shape
    (4, 5, 3)
    """
    if not isinstance(model, Module):
        raise TypeError(f"to_batch_ensemble: expected a module, got {type(model).__name__}")
    base = next_key("to_batch_ensemble") if key is None else checked(key, "to_batch_ensemble")
    copies: dict[int, Module] = {}
    replaced: list[Module] = []

    def converted(module: Module) -> Module:
        if id(module) not in copies:
            copies[id(module)] = module
            if type(module) in (Linear, Conv2d):
                layer_key = fold_in(base, len(replaced))
                copies[id(module)] = around(module, num_estimators, factors, layer_key)
                replaced.append(module)
            elif not isinstance(module, (MultiheadAttention, BatchEnsemble)):
                for name, child in module.named_children():
                    setattr(module, name, converted(child))
        return copies[id(module)]

    out = converted(model.clone())
    if not replaced:
        raise ValueError(
            f"to_batch_ensemble: {type(model).__name__} has no Linear or Conv2d layer to replace"
        )
    return out
