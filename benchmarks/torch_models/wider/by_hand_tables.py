"""Models of tables, clicks and series, written by hand."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import distributions, nn

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]


class Dlrm(nn.Module):
    """A recommender: bags of categories, dense numbers, and the products of all pairs."""

    def __init__(self, mode: str = "sum") -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(n, 8, mode=mode) for n in (10, 20, 30)])
        self.bottom = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(8 + 6, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, dense: torch.Tensor, *sparse: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        parts = [x, *[bag(ids) for bag, ids in zip(self.bags, sparse, strict=True)]]
        t = torch.stack(parts, 1)
        z = torch.bmm(t, t.transpose(1, 2))
        li, lj = torch.tril_indices(4, 4, offset=-1)
        return torch.sigmoid(self.top(torch.cat([x, z[:, li, lj]], 1)))


class DeepFm(nn.Module):
    """Factorization machines beside a network."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, 10, 30]))
        self.embed, self.linear = nn.Embedding(60, 8), nn.Embedding(60, 1)
        self.mlp = nn.Sequential(
            nn.Linear(24, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.offsets
        e = self.embed(x)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.linear(x).sum(1) + fm + self.mlp(e.flatten(1))).squeeze(1)


def sparsemax(x: torch.Tensor) -> torch.Tensor:
    """The nearest point of the simplex."""
    z, _ = torch.sort(x, dim=-1, descending=True)
    k = torch.arange(1, x.size(-1) + 1, dtype=x.dtype, device=x.device)
    support = 1 + k * z > z.cumsum(-1)
    size = support.sum(-1, keepdim=True)
    tau = (z.cumsum(-1).gather(-1, size - 1) - 1) / size
    return torch.clamp(x - tau, min=0)


class GhostNorm(nn.Module):
    """Batch normalization of chunks."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(size, momentum=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.bn(part) for part in x.chunk(2, 0)], 0)


class TabNet(nn.Module):
    """Steps that attend to columns, each to others than those before."""

    def __init__(self, ghost: bool = False) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(6, momentum=0.01)
        self.shared = nn.Linear(6, 16, bias=False)
        self.own = nn.ModuleList([nn.Linear(8, 16) for _ in range(3)])
        self.attend = nn.ModuleList([nn.Linear(4, 6, bias=False) for _ in range(2)])
        norm = GhostNorm if ghost else nn.BatchNorm1d
        self.norms = nn.ModuleList([norm(6) for _ in range(2)])
        self.out = nn.Linear(4, 3)

    def transform(self, x: torch.Tensor, k: int) -> torch.Tensor:
        h = F.glu(self.shared(x))
        return (h + F.glu(self.own[k](h))) * 0.5**0.5

    def forward(self, x: torch.Tensor) -> Any:
        x = self.bn(x)
        prior, total, loss = torch.ones_like(x), 0, 0
        a = self.transform(x, 0)[:, 4:]
        for k in range(2):
            mask = sparsemax(self.norms[k](self.attend[k](a)) * prior)
            loss = loss + (mask * torch.log(mask + 1e-15)).sum(1).mean()
            prior = prior * (1.3 - mask)
            d, a = self.transform(mask * x, k + 1).split([4, 4], 1)
            total = total + F.relu(d)
        return self.out(total), loss


class FtTransformer(nn.Module):
    """Columns as tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(4, 16)), nn.Parameter(torch.randn(4, 16))
        self.cats = nn.ModuleList([nn.Embedding(n, 16) for n in (3, 5)])
        self.cls = nn.Parameter(torch.randn(16))
        layer = nn.TransformerEncoderLayer(
            16, 4, 32, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        x = self.weight[None] * numbers[..., None] + self.bias
        c = torch.stack([e(categories[:, i]) for i, e in enumerate(self.cats)], 1)
        x = torch.cat([self.cls.expand(len(x), 1, -1), x, c], 1)
        return self.head(self.encoder(x)[:, 0])


class NBeats(nn.Module):
    """Blocks that each explain a part of a series: a trend, and seasons."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            [nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, n)) for n in (6, 8)]
        )
        t = torch.arange(16) / 16.0
        trend = torch.stack([t**k for k in range(3)])
        season = torch.stack(
            [f(2 * torch.pi * k * t) for k in (1, 2) for f in (torch.cos, torch.sin)]
        )
        self.bases = nn.ParameterList(
            [nn.Parameter(x, requires_grad=False) for x in (trend, season)]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        forecast = torch.zeros(x.size(0), 4, dtype=x.dtype)
        for net, basis in zip(self.nets, self.bases, strict=True):
            back, ahead = net(x).chunk(2, -1)
            x = x - back @ basis[:, :12]
            forecast += ahead @ basis[:, 12:]
        return forecast


class DeepAr(nn.Module):
    """A recurrent network that gives the likelihood of what comes next."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.lstm = nn.LSTM(2 + 4, 12, 2, batch_first=True)
        self.args = nn.Linear(12, 3)

    def forward(self, y: torch.Tensor, covariate: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        scale = 1 + y.abs().mean(1, keepdim=True)
        lagged = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1) / scale
        e = self.embed(item)[:, None].expand(-1, y.size(1), -1)
        h, _ = self.lstm(torch.cat([lagged[..., None], covariate[..., None], e], -1))
        df, loc, s = self.args(h).unbind(-1)
        student = distributions.StudentT(2 + F.softplus(df), loc * scale, F.softplus(s) * scale)
        return -student.log_prob(y).mean(1)


class Quantiles(nn.Module):
    """A gated residual network with variable selection, and three quantiles."""

    def __init__(self) -> None:
        super().__init__()
        self.select = nn.Sequential(nn.Linear(12, 8), nn.ELU(), nn.Linear(8, 3), nn.Softmax(-1))
        self.each = nn.ModuleList([nn.Linear(4, 8) for _ in range(3)])
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.glu, self.norm = nn.Linear(8, 16), nn.LayerNorm(8)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.select(x.flatten(2))
        parts = torch.stack([f(x[..., k, :]) for k, f in enumerate(self.each)], -1)
        h = (parts * w.unsqueeze(-2)).sum(-1)
        mask = nn.Transformer.generate_square_subsequent_mask(h.size(1), dtype=h.dtype)
        a, _ = self.attn(h, h, h, attn_mask=mask, is_causal=True)
        return self.out(self.norm(h + F.glu(self.glu(a))))


class GaussianProcess(nn.Module):
    """The marginal likelihood of a Gaussian process with a learned kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.log_scale, self.log_noise = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(()))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = self.net(x) / self.log_scale.exp()
        k = torch.exp(-0.5 * torch.cdist(z, z).pow(2))
        k = k + (self.log_noise.exp() + 1e-6) * torch.eye(x.size(1), dtype=x.dtype)
        normal = distributions.MultivariateNormal(torch.zeros_like(y), k)
        return normal.log_prob(y)


class SoftTree(nn.Module):
    """A forest of oblivious trees whose choices are soft."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.thresholds = (
            nn.Parameter(torch.randn(6, 12)),
            nn.Parameter(torch.randn(12)),
        )
        self.leaves = nn.Parameter(torch.randn(4, 8, 2))
        bits = (torch.arange(8)[:, None] >> torch.arange(3)) & 1
        self.register_buffer("codes", torch.stack([bits, 1 - bits], -1).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = x @ torch.softmax(self.features, 0)
        p = torch.sigmoid(chosen - self.thresholds).view(-1, 4, 3)
        both = torch.stack([p, 1 - p], -1)
        responses = torch.einsum("btdk,ldk->btdl", both, self.codes).prod(2)
        return torch.einsum("btl,tlo->bo", responses, self.leaves)


def _clicks() -> tuple[torch.Tensor, ...]:
    return torch.randn(3, 4), *[torch.randint(0, n, (3, 2)) for n in (10, 20, 30)]


MODELS = [
    Model("tables/dlrm", lambda: Call(Dlrm(), _clicks())),
    Model("tables/dlrm_max", lambda: Call(Dlrm("max"), _clicks())),
    Model("tables/deepfm", lambda: Call(DeepFm(), (torch.randint(0, 10, (3, 3)),))),
    Model("tables/tabnet", lambda: Call(TabNet(), (torch.randn(4, 6),))),
    Model("tables/tabnet_ghost", lambda: Call(TabNet(ghost=True), (torch.randn(4, 6),))),
    Model(
        "tables/ft_transformer",
        lambda: Call(FtTransformer(), (torch.randn(3, 4), torch.randint(0, 3, (3, 2)))),
    ),
    Model("tables/nbeats", lambda: Call(NBeats(), (torch.randn(3, 12),))),
    Model(
        "tables/deepar",
        lambda: Call(DeepAr(), (torch.rand(3, 6), torch.randn(3, 6), torch.tensor([0, 2, 4]))),
    ),
    Model("tables/tft", lambda: Call(Quantiles(), (torch.randn(2, 5, 3, 4),))),
    Model("tables/gp", lambda: Call(GaussianProcess(), (torch.randn(2, 5, 3), torch.randn(2, 5)))),
    Model("tables/soft_tree", lambda: Call(SoftTree(), (torch.randn(3, 6),))),
]
