"""How the members' inputs lie in one array: one member's batch after the other, or along an axis.

Tiled, an input is (members × batch, ...), and ordinary layers in between, such as batch
normalization and pooling, take it as one batch; split, it is (members, batch, ...).

``MultiHead``: members that share all but their last layers.

Source: Lee et al., "Why M heads are better than one: training a diverse ensemble of deep networks",
2015.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.layout import reshape
from stretto.func import vmap
from stretto.nn.functional.checks import positive, refuse
from stretto.nn.module import Module, stateful_call
from stretto.nn.updating import named_arrays
from stretto.tree import stack, unstack

__all__ = ["MultiHead", "repeat_members", "split_members"]


def repeat_members(x: ArrayLike, num_estimators: int) -> Array:
    """Tile a batch, so that each member gets the same.

    Args:
        x: (batch, ...).
        num_estimators: how many members.

    Returns:
        (num_estimators × batch, ...).

    Raises:
        ValueError: ``x`` has no axis of a batch, or ``num_estimators`` is less than 1.

    >>> import stretto.numpy as snp
    >>> from stretto.ensemble.layers import repeat_members
    >>> repeat_members(snp.array([[1.0], [2.0]]), 2)[:, 0]
    Array([1., 2., 1., 2.], dtype=float32)
    """
    positive("repeat_members", num_estimators=num_estimators)
    values = as_value(x, "repeat_members")
    if not values.ndim:
        raise ValueError(f"repeat_members: x must have a batch axis, got {values.type}")
    return merged(broadcast_to(values, (num_estimators, *values.shape)))


def split_members(x: ArrayLike, num_estimators: int) -> Array:
    """Put the members along an axis of their own.

    Args:
        x: (num_estimators × batch, ...).
        num_estimators: how many members.

    Returns:
        (num_estimators, batch, ...).

    Raises:
        ValueError: axis 0 does not hold equally many for each member.

    >>> import stretto.numpy as snp
    >>> from stretto.ensemble.layers import split_members
    >>> split_members(snp.arange(6.0), 2)
    Array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    """
    positive("split_members", num_estimators=num_estimators)
    values = as_value(x, "split_members")
    if not values.ndim or values.shape[0] % num_estimators:
        raise ValueError(
            f"split_members: axis 0 must hold a batch for each of {num_estimators} members, got "
            f"{values.type}"
        )
    return reshape(values, (num_estimators, values.shape[0] // num_estimators, *values.shape[1:]))


def merged(x: Array) -> Array:
    """Split to tiled."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def by_member(layer: Module, x: ArrayLike, num_estimators: int, tiled: int) -> tuple[Array, bool]:
    """The input split, and whether it came tiled, which is to have ``tiled`` axes.

    Raises ``ValueError`` that names the layer.
    """
    values = as_value(x, type(layer).__name__, "input")
    if values.ndim == tiled and values.shape[0] % num_estimators == 0:
        return split_members(values, num_estimators), True
    if values.ndim <= tiled or values.shape[0] != num_estimators:
        refuse(
            layer,
            f"({num_estimators} members × batch, ...) of {tiled} axes, or ({num_estimators} "
            f"members, batch, ...) of more (repeat_members gives each member the same batch)",
            values,
        )
    return values, False


def spread(values: Array, ndim: int, place: int) -> Array:
    """(members, channels) as an array of ``ndim`` axes, channels along ``place``."""
    shape = [values.shape[0], *[1] * (ndim - 1)]
    shape[place] = values.shape[1]
    return reshape(values, tuple(shape))


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
