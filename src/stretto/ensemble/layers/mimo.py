"""MIMO: members that are subnetworks of one network, each with an input and an output of its own.

The inputs of M members lie side by side in the channels of the first layer, and their outputs in
those of the last; all layers between are one ordinary network. In training each member sees other
examples, and learns its own; at test all see one, and their predictions are an ensemble's for the
price of one call. Source: Havasi et al., "Training independent subnetworks for robust prediction",
2021.
"""

from __future__ import annotations

from typing import Any

import stretto.numpy as snp
from stretto import tree
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto.nn.functional.checks import positive, refuse
from stretto.nn.module import Module
from stretto.random.discrete_draws import permutation
from stretto.random.keys import as_key, split
from stretto.random.streams import next_key

__all__ = ["MIMO", "mimo_batch"]


class MIMO(Module):
    """A network with several inputs and outputs, called as its members.

    In train mode the input is (num_estimators, batch, ...), an example of its own for each member,
    as ``mimo_batch`` draws them; in evaluation mode (batch, ...), which all members get.

    Args:
        network: a module whose input has num_estimators × channels along ``axis``, a member's after
            the other's, and whose output num_estimators × outputs along ``out_axis``.
        num_estimators: how many members.
        axis: that of channels in the network's input, from the end: −1 for features, −3 for images
            (batch, channels, height, width).
        out_axis: that of outputs, from the end.

    Raises:
        TypeError: ``network`` is not a module.
        ValueError: a setting is out of range; or, when called, the input or output does not match.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.ensemble.layers import MIMO
    >>> network = nn.Sequential(nn.Linear(3 * 8, 64), nn.ReLU(), nn.Linear(64, 3 * 5))
    >>> model = MIMO(network, num_estimators=3)
    >>> model(st.numpy.ones((3, 10, 8))).shape, model.eval()(st.numpy.ones((10, 8))).shape
    ((3, 10, 5), (3, 10, 5))
    """

    network: Any

    def __init__(
        self, network: Module, num_estimators: int, axis: int = -1, out_axis: int = -1
    ) -> None:
        super().__init__()
        if not isinstance(network, Module):
            raise TypeError(f"MIMO: expected a module, got {type(network).__name__}")
        positive("MIMO", num_estimators=num_estimators)
        for name, value in (("axis", axis), ("out_axis", out_axis)):
            if not value < 0:
                raise ValueError(f"MIMO: {name} must count from the end, −1 or less, got {value}")
        self.network = network
        self.num_estimators = num_estimators
        self.axis = axis
        self.out_axis = out_axis

    def forward(self, input: ArrayLike) -> Array:
        """Run all members.

        Args:
            input: (num_estimators, batch, ...) in train mode, (batch, ...) in evaluation mode.

        Returns:
            (num_estimators, batch, ...).

        Raises:
            ValueError: the input does not match, or the network's output cannot be split.
        """
        x = as_value(input, "MIMO", "input")
        if self.training:
            if x.ndim < 2 - self.axis or x.shape[0] != self.num_estimators:
                refuse(
                    self,
                    f"({self.num_estimators} members, batch, ...) in train mode, as mimo_batch has "
                    f"it (after .eval() all members get one batch)",
                    x,
                )
        else:
            if x.ndim < 1 - self.axis:
                refuse(self, f"(batch, ...) with channels along axis {self.axis}", x)
            x = snp.broadcast_to(x, (self.num_estimators, *x.shape))
        out = self.network(_side_by_side(x, self.axis))
        if out.ndim < 1 - self.out_axis or out.shape[self.out_axis] % self.num_estimators:
            raise ValueError(
                f"MIMO({self.extra_repr()}): expected of the network outputs of "
                f"{self.num_estimators} members along axis {self.out_axis}, got {out.type}"
            )
        return _apart(out, self.num_estimators, self.out_axis)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"num_estimators={self.num_estimators}, axis={self.axis}, out_axis={self.out_axis}"


def _side_by_side(x: Array, axis: int) -> Array:
    """Return (members, batch, ...) as (batch, ...) with members × channels along the axis."""
    moved = snp.moveaxis(x, 0, axis - 1)
    place = moved.ndim + axis
    shape = moved.shape
    return moved.reshape(*shape[: place - 1], shape[place - 1] * shape[place], *shape[place + 1 :])


def _apart(x: Array, members: int, axis: int) -> Array:
    """Return the reverse."""
    place = x.ndim + axis
    shape = x.shape
    parts = x.reshape(*shape[:place], members, shape[place] // members, *shape[place + 1 :])
    return snp.moveaxis(parts, place, 0)


def mimo_batch(
    batch: Tree,
    num_estimators: int,
    *,
    input_repetition: float = 0.0,
    batch_repetition: int = 1,
    key: Key | None = None,
) -> Tree:
    """Draw each member's examples of a batch: all of it, in an order of its own.

    Args:
        batch: a tree of arrays (batch, ...), such as inputs and labels, which stay together.
        num_estimators: how many members.
        input_repetition: ρ in [0, 1], the share of places at which all members get the same
            example, as at test: it lets members share features where a network is too small for
            independent ones. 1 trains an ordinary network with several outputs.
        batch_repetition: how often each example is in the batch.
        key: a key; ``None`` draws from the ambient stream.

    Returns:
        The tree, of arrays (num_estimators, batch_repetition × batch, ...).

    Raises:
        ValueError: a setting is out of range, or arrays differ in their number of examples.

    Source: Havasi et al., 2021, section 2 and appendix.

    >>> import stretto as st, stretto.numpy as snp
    >>> from stretto.ensemble.layers import mimo_batch
    >>> x, y = mimo_batch((snp.ones((6, 4)), snp.arange(6)), 3, key=st.random.key(0))
    >>> x.shape, snp.sort(y, axis=1).tolist()[2]
    ((3, 6, 4), [0, 1, 2, 3, 4, 5])
    """
    caller = "mimo_batch"
    positive(caller, num_estimators=num_estimators, batch_repetition=batch_repetition)
    if not 0 <= input_repetition <= 1:
        raise ValueError(f"{caller}: input_repetition must be in [0, 1], got {input_repetition}")
    shapes = [snp.shape(leaf) for leaf in tree.leaves(batch)]
    if not shapes or any(shape[:1] != shapes[0][:1] or not shape for shape in shapes):
        raise ValueError(
            f"{caller}: expected arrays of shape (batch, ...), of equally many examples, got "
            f"{', '.join(map(str, shapes)) or 'none'}"
        )
    key = next_key(caller) if key is None else as_key(key, caller)
    keys = split(key, num_estimators + 1)
    examples = shapes[0][0]
    places = snp.tile(snp.arange(examples), batch_repetition)
    places = permutation(keys[0], places)
    own = round((1 - input_repetition) * places.shape[0])
    # Each member's own order of the first places; at the others all have the same example.
    orders = vmap(lambda key: permutation(key, places[:own]))(keys[1:])
    same = snp.broadcast_to(places[own:], (num_estimators, places.shape[0] - own))
    order = snp.concatenate([orders, same], axis=1)
    return tree.map(lambda leaf: snp.asarray(leaf)[order], batch)
