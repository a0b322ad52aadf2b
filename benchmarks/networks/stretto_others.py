"""A graph network and a neural ODE in Stretto."""

from __future__ import annotations

from typing import Any

import stretto as st
import stretto.numpy as snp
from stretto import nn

__all__ = ["MODELS"]


class MessageLayer(nn.Module):
    """Messages along edges, summed where they arrive, and an update of each node."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message1 = nn.Linear(2 * width, width)
        self.message2 = nn.Linear(width, width)
        self.update1 = nn.Linear(2 * width, width)
        self.update2 = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, nodes: Any, senders: Any, receivers: Any) -> Any:
        ends = snp.concatenate([nodes[senders], nodes[receivers]], axis=1)
        messages = self.message2(nn.silu(self.message1(ends)))
        arrived = st.lax.segment_sum(messages, receivers, nodes.shape[0])
        both = snp.concatenate([nodes, arrived], axis=1)
        return self.norm(nodes + self.update2(nn.silu(self.update1(both))))


class Graph(nn.Module):
    """A class for each node; as the interaction networks of Battaglia et al. (2016)."""

    def __init__(self, inputs: int, width: int, layers: int, classes: int) -> None:
        super().__init__()
        self.encode = nn.Linear(inputs, width)
        self.layers = nn.ModuleList(MessageLayer(width) for _ in range(layers))
        self.out = nn.Linear(width, classes)

    def forward(self, nodes: Any, senders: Any, receivers: Any) -> Any:
        nodes = self.encode(nodes)
        for layer in self.layers:
            nodes = layer(nodes, senders, receivers)
        return self.out(nodes)


class ODE(nn.Module):
    """Chen et al. (2018): where a learned flow leads in unit time, by Runge and Kutta's method."""

    def __init__(self, width: int, hidden: int, steps: int, unrolled: bool = False) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)
        self.steps, self.unrolled = steps, unrolled

    def forward(self, y: Any) -> Any:
        if self.unrolled:
            for _ in range(self.steps):
                y = self.step(y)
            return y
        return st.lax.scan(lambda y, _: (self.step(y), None), y, length=self.steps)[0]

    def step(self, y: Any) -> Any:
        """A step of order 4."""
        size = 1 / self.steps
        k1 = self.slope(y)
        k2 = self.slope(y + size / 2 * k1)
        k3 = self.slope(y + size / 2 * k2)
        k4 = self.slope(y + size * k3)
        return y + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def slope(self, y: Any) -> Any:
        """dy/dt."""
        return self.fc2(snp.tanh(self.fc1(y)))


MODELS = {"graph": Graph, "ode": ODE}
