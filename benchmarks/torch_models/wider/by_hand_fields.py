"""Networks that are functions of space and time, written by hand: fields, operators, dynamics."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.torch_models.model import Call, Model

__all__ = ["MODELS"]


class NeRF(nn.Module):
    """Colour and density of points seen from directions, with encoded positions and a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ModuleList([nn.Linear(27, 32), nn.Linear(32, 32)])
        self.second = nn.ModuleList([nn.Linear(59, 32), nn.Linear(32, 32)])
        self.sigma = nn.Linear(32, 1)
        self.color = nn.Sequential(nn.Linear(32 + 15, 16), nn.ReLU(), nn.Linear(16, 3))

    @staticmethod
    def encode(x: torch.Tensor, levels: int) -> torch.Tensor:
        parts = [x]
        for i in range(levels):
            for fn in (torch.sin, torch.cos):
                parts.append(fn(2.0**i * math.pi * x))
        return torch.cat(parts, -1)

    def forward(self, points: torch.Tensor, directions: torch.Tensor) -> dict[str, torch.Tensor]:
        x = encoded = self.encode(points, 4)
        for layer in self.first:
            x = F.relu(layer(x))
        x = torch.cat([x, encoded], -1)
        for layer in self.second:
            x = F.relu(layer(x))
        density = F.softplus(self.sigma(x))
        d = F.normalize(directions, dim=-1)
        color = torch.sigmoid(self.color(torch.cat([x, self.encode(d, 2)], -1)))
        alpha = 1 - torch.exp(-density[..., 0] * 0.1)
        trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)
        weights = alpha * trans[:, :-1]
        return {"rgb": (weights[..., None] * color).sum(1), "depth": weights.sum(1)}


class Siren(nn.Module):
    """A field of sines."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 1)])
        for k, layer in enumerate(self.layers):
            bound = 1 / layer.in_features if k == 0 else math.sqrt(6 / layer.in_features) / 30
            nn.init.uniform_(layer.weight, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = torch.sin(30.0 * layer(x))
        return self.layers[-1](x)


class NeuralOde(nn.Module):
    """A state that follows a network's vector field, by fixed steps of Runge and Kutta."""

    def __init__(self, steps: int = 4) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
        self.steps = steps

    def slope(self, t: float, y: torch.Tensor) -> torch.Tensor:
        return self.field(torch.cat([y, y.new_full((y.shape[0], 1), t)], 1))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        h, path = 1.0 / self.steps, [y]
        for k in range(self.steps):
            t = k * h
            k1 = self.slope(t, y)
            k2 = self.slope(t + h / 2, y + h / 2 * k1)
            k3 = self.slope(t + h / 2, y + h / 2 * k2)
            k4 = self.slope(t + h, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            path.append(y)
        return torch.stack(path, 1)


class SpectralConv2d(nn.Module):
    """Products with complex weights, of the lowest frequencies."""

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        shape = (channels, channels, modes, modes)
        scale = 1 / channels**2
        self.w1 = nn.Parameter(scale * torch.rand(*shape, 2))
        self.w2 = nn.Parameter(scale * torch.rand(*shape, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        m = self.modes
        f = torch.fft.rfft2(x)
        out = torch.zeros_like(f)
        a, b = torch.view_as_complex(self.w1), torch.view_as_complex(self.w2)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :m, :m], a)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -m:, :m], b)
        return torch.fft.irfft2(out, s=x.shape[-2:])


class FourierNeuralOperator(nn.Module):
    """A map between functions on a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.lift = nn.Linear(3, 8)
        self.spectral = nn.ModuleList([SpectralConv2d(8, 3) for _ in range(2)])
        self.local = nn.ModuleList([nn.Conv2d(8, 8, 1) for _ in range(2)])
        self.out = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, h, w, _ = x.shape
        gy = torch.linspace(0, 1, h, dtype=x.dtype).view(1, h, 1, 1).expand(b, h, w, 1)
        gx = torch.linspace(0, 1, w, dtype=x.dtype).view(1, 1, w, 1).expand(b, h, w, 1)
        x = self.lift(torch.cat([x, gy, gx], -1)).permute(0, 3, 1, 2)
        for spectral, local in zip(self.spectral, self.local, strict=True):
            x = F.gelu(spectral(x) + local(x))
        return self.out(x.permute(0, 2, 3, 1))


class ForceField(nn.Module):
    """Energies of molecules by smooth filters of distances, and forces as their slopes."""

    def __init__(self, forces: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 16)
        self.register_buffer("centers", torch.linspace(0, 5, 20))
        self.filters = nn.Sequential(nn.Linear(20, 16), nn.Softplus(), nn.Linear(16, 16))
        self.dense = nn.Linear(16, 16)
        self.out = nn.Sequential(nn.Linear(16, 8), nn.Softplus(), nn.Linear(8, 1))
        self.forces = forces

    def energy(self, z: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        n = z.shape[1]
        delta = r[:, :, None] - r[:, None]
        eye = torch.eye(n, dtype=r.dtype, device=r.device)
        d = torch.sqrt((delta**2).sum(-1) + eye)
        rbf = torch.exp(-10 * (d[..., None] - self.centers) ** 2)
        cutoff = 0.5 * (torch.cos(d * math.pi / 5) + 1) * (d < 5) * (1 - eye)
        h = self.embedding(z)
        w = self.filters(rbf) * cutoff[..., None]
        h = h + self.dense((w * h[:, None]).sum(2))
        return self.out(h).sum((1, 2))

    def forward(self, z: torch.Tensor, r: torch.Tensor) -> Any:
        if not self.forces:
            return self.energy(z, r)
        r = r.requires_grad_(True)
        energy = self.energy(z, r)
        (slope,) = torch.autograd.grad(energy.sum(), r, create_graph=True)
        return energy, -slope


class PhysicsInformed(nn.Module):
    """The residual of Burgers' equation, by derivatives of a network with func.jvp."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
        self.out = nn.Linear(16, 1)

    def u(self, t: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.net(torch.stack([t, x], -1)))[..., 0]

    def forward(self, t: torch.Tensor, x: torch.Tensor) -> Any:
        one = torch.ones_like(x)
        u, u_t = torch.func.jvp(lambda t: self.u(t, x), (t,), (one,))

        def slope(x: torch.Tensor) -> torch.Tensor:
            return torch.func.jvp(lambda x: self.u(t, x), (x,), (one,))[1]

        u_x, u_xx = torch.func.jvp(slope, (x,), (one,))
        return u, u_t + u * u_x - 0.01 * u_xx


class Hamiltonian(nn.Module):
    """Dynamics that keep an energy, which a network gives: its slopes by func.grad and vmap."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        slope = torch.func.vmap(torch.func.grad(lambda s: self.net(s)[0]))(state)
        dq, dp = slope.chunk(2, -1)
        return torch.cat([dp, -dq], -1)


class DeepOperator(nn.Module):
    """DeepONet: a branch for the function's samples, a trunk for where it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Linear(16, 8))
        self.trunk = nn.Sequential(nn.Linear(1, 16), nn.GELU(), nn.Linear(16, 8), nn.GELU())
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bk,bpk->bp", self.branch(u), self.trunk(y)) + self.bias


class HashGrid(nn.Module):
    """Features of a grid, looked up by a hash of its corners and interpolated."""

    def __init__(self, size: int = 64) -> None:
        super().__init__()
        self.tables = nn.ParameterList([nn.Parameter(torch.randn(size, 2)) for _ in range(3)])
        self.size = size
        self.mlp = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = []
        for level, table in enumerate(self.tables):
            at = x * 2 ** (level + 2)
            low = at.floor().long()
            w = at - low
            total = torch.zeros(x.shape[0], 2, dtype=x.dtype)
            for i in (0, 1):
                for j in (0, 1):
                    corner = low + torch.tensor([i, j])
                    key = (corner[:, 0] ^ (corner[:, 1] * 2654435761)) % self.size
                    wx = w[:, 0] if i else 1 - w[:, 0]
                    wy = w[:, 1] if j else 1 - w[:, 1]
                    total = total + (wx * wy)[:, None] * table[key]
            features.append(total)
        return self.mlp(torch.cat(features, -1))


class SpatialTransformer(nn.Module):
    """An image that is turned by what a network makes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Sequential(
            nn.Conv2d(1, 4, 5), nn.MaxPool2d(2, stride=2), nn.ReLU(True), nn.Flatten()
        )
        self.fc = nn.Linear(4 * 6 * 6, 6)
        self.fc.bias.data = torch.tensor([1.0, 0, 0, 0, 1, 0])
        self.conv = nn.Conv2d(1, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        theta = self.fc(self.where(x)).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        return self.conv(F.grid_sample(x, grid, align_corners=False)).mean((2, 3))


def _molecules() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 10, (2, 5)), torch.randn(2, 5, 3)


MODELS = [
    Model("fields/nerf", lambda: Call(NeRF(), (torch.randn(3, 6, 3), torch.randn(3, 6, 3)))),
    Model("fields/siren", lambda: Call(Siren(), (torch.rand(3, 2),))),
    Model("fields/neural_ode", lambda: Call(NeuralOde(), (torch.randn(3, 3),))),
    Model("fields/fno", lambda: Call(FourierNeuralOperator(), (torch.randn(2, 8, 8, 1),))),
    Model("fields/schnet_energy", lambda: Call(ForceField(forces=False), _molecules())),
    Model("fields/schnet_forces", lambda: Call(ForceField(forces=True), _molecules())),
    Model("fields/pinn", lambda: Call(PhysicsInformed(), (torch.rand(4), torch.rand(4)))),
    Model("fields/hamiltonian", lambda: Call(Hamiltonian(), (torch.randn(3, 4),))),
    Model(
        "fields/deeponet", lambda: Call(DeepOperator(), (torch.randn(3, 10), torch.rand(3, 6, 1)))
    ),
    Model("fields/hash_grid", lambda: Call(HashGrid(), (torch.rand(5, 2),))),
    Model(
        "fields/spatial_transformer",
        lambda: Call(SpatialTransformer(), (torch.randn(2, 1, 16, 16),)),
    ),
]
