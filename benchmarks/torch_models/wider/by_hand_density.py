"""Models that make data or measure how likely it is, written by hand: flows, codes, generators."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]


class RealNVP(nn.Module):
    """Affine couplings with alternating masks: where a point goes, and its log density."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("masks", torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]]).repeat(2, 1))
        self.s = nn.ModuleList([self._net() for _ in range(4)])
        self.t = nn.ModuleList([self._net() for _ in range(4)])

    @staticmethod
    def _net() -> nn.Module:
        return nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(), nn.Linear(16, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        log_det, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            kept = self.masks[i] * z
            s = torch.tanh(self.s[i](kept)) * (1 - self.masks[i])
            t = self.t[i](kept) * (1 - self.masks[i])
            z = (1 - self.masks[i]) * (z - t) * torch.exp(-s) + kept
            log_det -= s.sum(1)
        log_p = -0.5 * (z**2 + math.log(2 * math.pi)).sum(1)
        return z, log_p + log_det


class Glow(nn.Module):
    """Actnorm, an invertible 1×1 convolution by its LU factors, and a coupling."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.loc = nn.Parameter(torch.randn(1, channels, 1, 1))
        self.log_scale = nn.Parameter(0.1 * torch.randn(1, channels, 1, 1))
        q, _ = torch.linalg.qr(torch.randn(channels, channels))
        p, lower, upper = torch.linalg.lu(q)
        self.register_buffer("p", p)
        self.lower = nn.Parameter(lower)
        self.upper = nn.Parameter(torch.triu(upper, 1))
        self.register_buffer("sign", torch.sign(torch.diagonal(upper)))
        self.log_s = nn.Parameter(torch.log(torch.abs(torch.diagonal(upper))))
        self.register_buffer("mask", torch.tril(torch.ones(channels, channels), -1))
        self.register_buffer("eye", torch.eye(channels))
        self.net = nn.Sequential(nn.Conv2d(channels // 2, 8, 3, padding=1), nn.ReLU())
        self.zero = nn.Conv2d(8, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b, c, h, w = x.shape
        # squeeze
        x = (
            x.view(b, c, h // 2, 2, w // 2, 2)
            .permute(0, 1, 3, 5, 2, 4)
            .reshape(b, c * 4, h // 2, w // 2)
        )
        pixels = (h // 2) * (w // 2)
        x = (x + self.loc) * self.log_scale.exp()
        det = self.log_scale.sum() * pixels
        weight = (
            self.p
            @ (self.lower * self.mask + self.eye)
            @ (self.upper * self.mask.T + torch.diag(self.sign * torch.exp(self.log_s)))
        )
        x = F.conv2d(x, weight[:, :, None, None])
        det = det + self.log_s.sum() * pixels
        a, other = x.chunk(2, 1)
        log_s, t = self.zero(self.net(a)).chunk(2, 1)
        s = torch.sigmoid(log_s + 2)
        out = torch.cat([a, (other + t) * s], 1)
        return out, det + torch.log(s).flatten(1).sum(1)


class Quantizer(nn.Module):
    """The nearest of a table's vectors, with slopes straight through."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.embedding.weight.data.uniform_(-1 / 16, 1 / 16)

    def forward(self, z: torch.Tensor) -> Any:
        flat = z.permute(0, 2, 3, 1).reshape(-1, 8)
        w = self.embedding.weight
        d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ w.t() + w.pow(2).sum(1)
        index = torch.argmin(d, 1)
        b, _, height, width = z.shape
        q = self.embedding(index).view(b, height, width, 8).permute(0, 3, 1, 2)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
        q = z + (q - z).detach()
        one_hot = F.one_hot(index, 16).to(z.dtype).mean(0)
        perplexity = torch.exp(-(one_hot * torch.log(one_hot + 1e-10)).sum())
        return q, loss, perplexity


class VQVAE(nn.Module):
    """Images as codes of a table, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
        self.vq = Quantizer()
        self.dec = nn.Sequential(nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    def forward(self, x: torch.Tensor) -> Any:
        q, loss, perplexity = self.vq(self.enc(x))
        return self.dec(q), loss, perplexity


class MaskedConv2d(nn.Conv2d):
    """A convolution that sees pixels before its own; it masks its weights in place, as many do."""

    def __init__(self, kind: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("mask", self.weight.data.clone())
        _, _, h, w = self.weight.size()
        self.mask.fill_(1)
        self.mask[:, :, h // 2, w // 2 + (kind == "B") :] = 0
        self.mask[:, :, h // 2 + 1 :] = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)


class MaskedInPlace(MaskedConv2d):
    """The same, as the code that most people copy has it: the weights themselves are masked."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data *= self.mask
        return super(MaskedConv2d, self).forward(x)


def _pixel_cnn(kind: Any) -> nn.Module:
    return nn.Sequential(
        kind("A", 1, 8, 5, padding=2, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        kind("B", 8, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.Conv2d(8, 4, 1),
    )


class Vae(nn.Module):
    """A variational autoencoder, which draws its code."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.enc = nn.Linear(6, 8)
        self.dec = nn.Linear(4, 6)
        self.how = how

    def forward(self, x: torch.Tensor) -> Any:
        mu, log_var = self.enc(x).chunk(2, -1)
        if self.how == "distributions":
            posterior = torch.distributions.Normal(mu, (0.5 * log_var).exp())
            prior = torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))
            kl = torch.distributions.kl_divergence(posterior, prior).sum(-1)
            z = posterior.rsample() if self.training else posterior.mean
        else:
            kl = -0.5 * (1 + log_var - mu.pow(2) - log_var.exp()).sum(-1)
            eps = torch.randn_like(mu)
            z = mu + eps * (0.5 * log_var).exp() if self.training else mu
        return self.dec(z), kl


class Generator(nn.Module):
    """A generator that is told a class, by conditional batch normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 16 * 4 * 4)
        self.bn = nn.BatchNorm2d(16, affine=False)
        self.embed = nn.Embedding(5, 32)
        self.conv = nn.ConvTranspose2d(16, 3, 4, 2, 1)

    def forward(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = self.bn(self.fc(z).view(-1, 16, 4, 4))
        gamma, beta = self.embed(y).chunk(2, 1)
        h = gamma.view(-1, 16, 1, 1) * h + beta.view(-1, 16, 1, 1)
        return torch.tanh(self.conv(F.relu(h)))


class Critic(nn.Module):
    """A discriminator with projection, whose weights have a spectral norm of one."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.conv = norm(nn.Conv2d(3, 8, 4, 2, 1))
        self.fc = norm(nn.Linear(8, 1))
        self.embed = norm(nn.Embedding(5, 8))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = F.leaky_relu(self.conv(x), 0.2).sum((2, 3))
        return self.fc(h) + (self.embed(y) * h).sum(1, keepdim=True)


class StdCritic(nn.Module):
    """A discriminator that adds the batch's standard deviation as a map."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        std = torch.sqrt(x.var(0, unbiased=False) + 1e-8).mean()
        return self.conv(torch.cat([x, std.expand(x.shape[0], 1, *x.shape[2:])], 1))


class Made(nn.Module):
    """Masked autoregressive densities."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 16), nn.Linear(16, 8)
        degree = torch.arange(16) % 3
        self.register_buffer("m1", (degree[:, None] >= torch.arange(4)[None]).float())
        self.register_buffer("m2", (torch.arange(4).repeat(2)[:, None] > degree[None]).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(F.linear(x, self.a.weight * self.m1, self.a.bias))
        mu, alpha = F.linear(h, self.b.weight * self.m2, self.b.bias).chunk(2, 1)
        u = (x - mu) * torch.exp(-alpha)
        return (-0.5 * u**2 - 0.5 * math.log(2 * math.pi) - alpha).sum(1)


class DiffusionUnet(nn.Module):
    """A U-Net that is told a time by sines, with attention at the bottom."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 8))
        self.inc, self.down = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.norm, self.attn = nn.GroupNorm(4, 8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.up, self.out = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(8, 1, 1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        half = 8
        freqs = torch.exp(-math.log(10000) * torch.arange(half) / (half - 1)).to(x)
        angle = t[:, None].to(x.dtype) * freqs[None]
        emb = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        skip = F.silu(self.inc(x)) + emb[:, :, None, None]
        h = self.down(skip)
        b, c = h.shape[:2]
        tokens = self.norm(h).view(b, c, -1).transpose(1, 2)
        h = h + self.attn(tokens, tokens, tokens, need_weights=False)[0].transpose(1, 2).view(
            h.shape
        )
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.out(F.silu(self.up(torch.cat([h, skip], 1))))


class Mixture(nn.Module):
    """A mixture density network, with the log likelihood by ``torch.distributions``."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Tanh())
        self.pi, self.mu, self.sigma = nn.Linear(16, 4), nn.Linear(16, 4), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = self.net(x)
        weights = torch.distributions.Categorical(logits=self.pi(h))
        parts = torch.distributions.Normal(self.mu(h), F.softplus(self.sigma(h)) + 1e-3)
        return -torch.distributions.MixtureSameFamily(weights, parts).log_prob(y)


def _classes() -> torch.Tensor:
    return torch.tensor([1, 3, 4])


def _weight_normed() -> Call:
    module = nn.Sequential(
        weight_norm(nn.Conv1d(3, 8, 3)), nn.ELU(), parametrizations.weight_norm(nn.Conv1d(8, 4, 3))
    )
    return Call(module, (torch.randn(2, 3, 16),))


def _critic(norm: Any) -> Call:
    return Call(Critic(norm), (torch.randn(3, 3, 8, 8), _classes()))


_PIXELS = (3, 1, 8, 8)

MODELS = [
    Model("density/realnvp", lambda: Call(RealNVP(), (torch.randn(3, 4),))),
    Model("density/glow", lambda: Call(Glow(16), (torch.randn(2, 4, 8, 8),))),
    Model("density/vqvae", lambda: Call(VQVAE(), (torch.randn(2, 1, 8, 8),))),
    Model("density/pixelcnn", lambda: Call(_pixel_cnn(MaskedConv2d), (torch.randn(_PIXELS),))),
    Model(
        "density/pixelcnn_in_place",
        lambda: Call(_pixel_cnn(MaskedInPlace), (torch.randn(_PIXELS),)),
    ),
    Model("density/vae", lambda: Call(Vae("by hand"), (torch.randn(3, 6),))),
    Model("density/vae_distributions", lambda: Call(Vae("distributions"), (torch.randn(3, 6),))),
    Model("density/cgan_generator", lambda: Call(Generator(), (torch.randn(3, 8), _classes()))),
    Model("density/sngan_critic", lambda: _critic(spectral_norm)),
    Model("density/sngan_critic_parametrized", lambda: _critic(parametrizations.spectral_norm)),
    Model("density/progan_critic", lambda: Call(StdCritic(), (torch.randn(3, 3, 8, 8),))),
    Model("density/made", lambda: Call(Made(), (torch.randn(3, 4),))),
    Model(
        "density/diffusion_unet",
        lambda: Call(DiffusionUnet(), (torch.randn(2, 1, 8, 8), torch.tensor([3, 40]))),
    ),
    Model("density/mixture", lambda: Call(Mixture(), (torch.randn(3, 3), torch.randn(3)))),
    Model("density/weight_norm", _weight_normed),
]
