"""Models whose parts choose, route, or make each other's weights, written by hand."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]


class DeepSets(nn.Module):
    """A function of a set, of which some members are missing."""

    def __init__(self) -> None:
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 8))
        self.rho = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        h = self.phi(x)
        total = (h * mask.unsqueeze(-1)).sum(1)
        largest = h.masked_fill(~mask.unsqueeze(-1), float("-inf")).max(1).values
        return self.rho(torch.cat([total, largest], -1))


class Mab(nn.Module):
    """Attention of a set to another, in heads."""

    def __init__(self, size: int = 16) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.o, self.n0, self.n1 = nn.Linear(size, size), nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        q, k, v = self.q(x), self.k(y), self.v(y)
        q_, k_, v_ = (torch.cat(t.split(4, 2), 0) for t in (q, k, v))
        a = torch.softmax(q_.bmm(k_.transpose(1, 2)) / 4, 2)
        o = self.n0(torch.cat((q_ + a.bmm(v_)).split(x.size(0), 0), 2))
        return self.n1(o + F.relu(self.o(o)))


class SetTransformer(nn.Module):
    """Induced points, and pooling by attention."""

    def __init__(self) -> None:
        super().__init__()
        self.inp = nn.Linear(3, 16)
        self.induced = nn.Parameter(torch.randn(1, 4, 16))
        self.seed = nn.Parameter(torch.randn(1, 1, 16))
        self.a, self.b, self.c = Mab(), Mab(), Mab()
        self.out = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.inp(x)
        h = self.b(h, self.a(self.induced.repeat(h.size(0), 1, 1), h))
        return self.out(self.c(self.seed.repeat(h.size(0), 1, 1), h)).squeeze(1)


class DenseMoe(nn.Module):
    """All experts, weighted by the gates of the best two; the others' are minus infinity."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 4)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)) for _ in range(4)]
        )

    def forward(self, x: torch.Tensor) -> Any:
        logits = self.gate(x)
        values, index = logits.topk(2, dim=-1)
        sparse = torch.full_like(logits, float("-inf")).scatter(-1, index, values)
        gates = torch.softmax(sparse, -1)
        out = torch.stack([expert(x) for expert in self.experts], 1)
        load = gates.mean(0)
        return (gates.unsqueeze(-1) * out).sum(1), (load.std() / (load.mean() + 1e-10)) ** 2


class SparseMoe(DenseMoe):
    """Each expert sees the rows that chose it, as in nanoGPT's relatives."""

    def forward(self, x: torch.Tensor) -> Any:
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2)
        out = torch.zeros(x.shape[0], 3, dtype=x.dtype)
        for i, expert in enumerate(self.experts):
            row, nth = torch.where(chosen == i)
            out.index_add_(0, row, weights[row, nth, None] * expert(x[row]))
        return out


class MemoryNetwork(nn.Module):
    """Questions about stories, in three hops."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList([nn.Embedding(30, 8, padding_idx=0) for _ in range(4)])

    def forward(self, story: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        u = self.embeddings[0](query).sum(1)
        for k in range(3):
            m = self.embeddings[k](story).sum(2)
            c = self.embeddings[k + 1](story).sum(2)
            p = torch.softmax((m * u.unsqueeze(1)).sum(2), 1)
            u = u + (c * p.unsqueeze(2)).sum(1)
        return F.log_softmax(u @ self.embeddings[3].weight.T, 1)


class HyperNetwork(nn.Module):
    """A network whose weights another makes, of each example."""

    def __init__(self) -> None:
        super().__init__()
        self.hyper = nn.Linear(5, 4 * 8 + 8 + 8 + 1)

    def forward(self, context: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        w1, b1, w2, b2 = self.hyper(context).split([32, 8, 8, 1], 1)
        h = torch.relu(torch.bmm(x, w1.view(-1, 4, 8)) + b1[:, None])
        return torch.bmm(h, w2[..., None]) + b2[:, None]


class CapsuleNetwork(nn.Module):
    """Capsules with three rounds of routing by agreement."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, 2)
        self.weight = nn.Parameter(0.1 * torch.randn(1, 144, 4, 8, 4))

    @staticmethod
    def squash(x: torch.Tensor) -> torch.Tensor:
        n = (x**2).sum(-1, keepdim=True)
        return n / (1 + n) * x / torch.sqrt(n + 1e-9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u = self.squash(self.conv(x).view(x.size(0), 144, 4))
        u_hat = torch.einsum("zncdi,bni->bncd", self.weight, u)
        b = torch.zeros(x.size(0), 144, 4, dtype=x.dtype)
        fixed = u_hat.detach()
        for k in range(3):
            c = F.softmax(b, 2)
            if k < 2:
                v = self.squash((c[..., None] * fixed).sum(1))
                b = b + (fixed * v[:, None]).sum(-1)
        return self.squash((c[..., None] * u_hat).sum(1)).norm(dim=-1)


class Nalu(nn.Module):
    """Sums and products, between which a gate chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.m = nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(3, 4))
        self.g = nn.Parameter(torch.randn(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = torch.tanh(self.w) * torch.sigmoid(self.m)
        a = F.linear(x, w)
        m = torch.exp(F.linear(torch.log(torch.abs(x) + 1e-7), w))
        g = torch.sigmoid(F.linear(x, self.g))
        return g * a + (1 - g) * m


class Highway(nn.Module):
    """Layers that gates let inputs past."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 12) for _ in range(3)])
        for layer in self.layers:
            layer.bias.data[6:].fill_(-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            h, t = layer(x).chunk(2, dim=-1)
            t = t.sigmoid()
            x = t * F.relu(h) + (1 - t) * x
        return x


class GraphAttention(nn.Module):
    """Attention along a dense adjacency."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.a = nn.Linear(5, 8, bias=False), nn.Parameter(torch.randn(16, 1))
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        h = self.w(x)
        e = F.leaky_relu(h @ self.a[:8] + (h @ self.a[8:]).transpose(1, 2), 0.2)
        e = torch.where(adjacency > 0, e, -9e15 * torch.ones_like(e))
        return F.log_softmax(self.out(F.elu(torch.softmax(e, 2) @ h)), -1)


class Siamese(nn.Module):
    """One network for an anchor, a positive and a negative, and the loss of the three."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.PReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.fc = nn.Linear(36, 8)
        self.loss = nn.TripletMarginLoss(1.0, reduction="none")
        self.cosine = nn.CosineEmbeddingLoss(reduction="none")

    def forward(self, a: torch.Tensor, p: torch.Tensor, n: torch.Tensor) -> Any:
        a, p, n = (F.normalize(self.fc(self.net(x))) for x in (a, p, n))
        return self.loss(a, p, n), self.cosine(a, p, torch.ones(len(a))), F.pairwise_distance(a, n)


class Spike(torch.autograd.Function):
    """A step, whose slope is that of a fast sigmoid."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad / (10 * x.abs() + 1) ** 2


class SpikingNetwork(nn.Module):
    """Neurons that leak, integrate and fire."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 12), nn.Linear(12, 3)
        self.beta = nn.Parameter(torch.tensor(0.9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        v1, v2 = x.new_zeros(x.shape[1], 12), x.new_zeros(x.shape[1], 3)
        spikes = []
        for step in x:
            v1 = self.beta.clamp(0, 1) * v1 + self.a(step)
            s1 = Spike.apply(v1 - 1)
            v1 = v1 - s1.detach()
            v2 = 0.9 * v2 + self.b(s1)
            s2 = Spike.apply(v2 - 1)
            v2 = v2 - s2.detach()
            spikes.append(s2)
        return torch.stack(spikes).sum(0) + v2


class DomainAdversarial(nn.Module):
    """Features whose slopes a layer turns round."""

    class Reverse(torch.autograd.Function):
        """The identity, with the opposite slope."""

        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, scale: float) -> torch.Tensor:
            ctx.scale = scale
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return -ctx.scale * grad, None

    def __init__(self) -> None:
        super().__init__()
        self.features, self.label = nn.Linear(5, 8), nn.Linear(8, 3)
        self.domain = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> Any:
        h = torch.relu(self.features(x))
        return self.label(h), self.domain(self.Reverse.apply(h, 0.5))


class BinaryNetwork(nn.Module):
    """Weights of plus and minus one, with slopes straight through by ``detach``."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in (self.a, self.b):
            w = layer.weight
            scale = w.abs().mean(1, keepdim=True)
            w = w + (scale * torch.sign(w) - w).detach()
            x = F.linear(torch.clamp(x, -1, 1), w, layer.bias)
        return x


class EarlyExit(nn.Module):
    """Heads at two depths; rows that are sure keep the first."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 8)
        self.head_a, self.head_b = nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.a(x))
        first = self.head_a(h)
        second = self.head_b(torch.relu(self.b(h)))
        sure = torch.softmax(first, -1).amax(-1, keepdim=True) > 0.5
        return torch.where(sure, first, second)


def _adjacency() -> torch.Tensor:
    return (torch.rand(2, 6, 6) > 0.5) | torch.eye(6, dtype=torch.bool)


def _three() -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(3, 1, 8, 8) for _ in range(3))


def _story() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 30, (3, 5, 4)), torch.randint(0, 30, (3, 4))


MODELS = [
    Model(
        "routing/deepsets",
        lambda: Call(
            DeepSets(),
            (torch.randn(3, 5, 3), torch.arange(5)[None] < torch.tensor([[5], [3], [1]])),
        ),
    ),
    Model("routing/set_transformer", lambda: Call(SetTransformer(), (torch.randn(2, 6, 3),))),
    Model("routing/moe_dense", lambda: Call(DenseMoe(), (torch.randn(3, 6),))),
    Model("routing/moe_sparse", lambda: Call(SparseMoe(), (torch.randn(3, 6),))),
    Model("routing/memory_network", lambda: Call(MemoryNetwork(), _story())),
    Model(
        "routing/hypernetwork",
        lambda: Call(HyperNetwork(), (torch.randn(3, 5), torch.randn(3, 7, 4))),
    ),
    Model("routing/capsules", lambda: Call(CapsuleNetwork(), (torch.randn(2, 1, 14, 14),))),
    Model("routing/nalu", lambda: Call(Nalu(), (torch.randn(3, 4),))),
    Model("routing/highway", lambda: Call(Highway(), (torch.randn(3, 6),))),
    Model(
        "routing/dense_gat", lambda: Call(GraphAttention(), (torch.randn(2, 6, 5), _adjacency()))
    ),
    Model("routing/siamese", lambda: Call(Siamese(), _three())),
    Model(
        "routing/spiking", lambda: Call(SpikingNetwork(), (torch.randn(4, 3, 6),)), batched=False
    ),
    Model("routing/dann", lambda: Call(DomainAdversarial(), (torch.randn(3, 5),))),
    Model("routing/binary", lambda: Call(BinaryNetwork(), (torch.randn(3, 6),))),
    Model("routing/early_exit", lambda: Call(EarlyExit(), (torch.randn(3, 6),))),
]
