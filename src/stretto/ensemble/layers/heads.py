"""``MultiHead``: members that share all but their last layers.

Source: Lee et al., "Why M heads are better than one: training a diverse ensemble of deep networks",
2015.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stretto._engine.core.typing import Tree
from stretto.func.vectorize import vmap
from stretto.nn.module import Module, stateful_call
from stretto.nn.updating import named_arrays
from stretto.tree import stack, unstack

__all__ = ["MultiHead"]


class MultiHead(Module):
    """One trunk, and a head for each member: heads of one make, run as one.

    ``heads`` holds their arrays stacked along axis 0. In train mode each head draws its own random
    numbers.

    Args:
        trunk: a module, run once.
        heads: modules of one structure, one for each member.

    Raises:
        TypeError: something is not a module.
        ValueError: a head differs from the first.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.ensemble.layers import MultiHead
    >>> trunk = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    >>> model = MultiHead(trunk, [nn.Linear(16, 3) for _ in range(5)])
    >>> model(st.numpy.ones((4, 8))).shape
    (5, 4, 3)
    """

    trunk: Any
    heads: Any

    def __init__(self, trunk: Module, heads: Iterable[Module]) -> None:
        super().__init__()
        heads = list(heads)
        for module in (trunk, *heads):
            if not isinstance(module, Module):
                raise TypeError(f"MultiHead: expected modules, got {type(module).__name__}")
        if not heads:
            raise ValueError("MultiHead: expected at least one head, got none")
        self.num_estimators = len(heads)
        self.trunk = trunk
        self.heads = stack(heads)

    def forward(self, *args: Any, **kwargs: Any) -> Tree:
        """Run the trunk, and all heads on what it gives.

        Args:
            *args: for the trunk.
            **kwargs: for the trunk.

        Returns:
            (members, batch, ...).
        """
        features = self.trunk(*args, **kwargs)
        out, updated = vmap(_run, in_dims=(0, None), randomness="different")(self.heads, features)
        here = named_arrays(self.heads)
        for name, value in updated.items():
            owner, attribute, _ = here[name]
            owner.update_buffer(attribute, value)
        return out

    def members(self) -> list[Any]:
        """Return the heads, one module each.

        Returns:
            The modules.
        """
        return unstack(self.heads)


def _run(head: Module, features: Tree) -> tuple[Any, dict[str, Any]]:
    """A head's output, and the buffers that it updated, by name."""
    out, after = stateful_call(head, features)
    old = named_arrays(head)
    return out, {n: new for n, (_, _, new) in named_arrays(after).items() if new is not old[n][2]}
