"""Random networks: layers of all kinds, at sizes for which XLA's libraries are chosen.

A network is a list of layers, each a function of its weights and of what comes in. It can be run in
any dtype, for one member of an ensemble or under ``vmap``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto import lax, nn

__all__ = ["Network", "draw_network"]

F = nn.functional


class Layer(NamedTuple):
    """A layer: what it is called in reports, the shapes of its weights, and what it computes."""

    name: str
    shapes: Sequence[tuple[int, ...]]
    run: Callable[..., Any]


class Network(NamedTuple):
    """Layers, and whether all of them are smooth: then gradients in two precisions agree."""

    layers: list[Layer]
    shape: tuple[int, ...]
    smooth: bool

    @property
    def words(self) -> str:
        """The layers by name, with the shape that comes in."""
        return f"{self.shape}: " + ", ".join([layer.name for layer in self.layers])

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of all weights, in order."""
        return [shape for layer in self.layers for shape in layer.shapes]

    def __call__(self, weights: Sequence[Any], x: Any) -> Any:
        """Apply the layers to a batch."""
        rest = [*weights]
        for layer in self.layers:
            own, rest = rest[: len(layer.shapes)], rest[len(layer.shapes) :]
            x = layer.run(x, *own)
        return x


SMOOTH: dict[str, Callable[[Any], Any]] = {
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": F.tanh,
    "softplus": F.softplus,
    "sigmoid": F.sigmoid,
}
"""Activations whose slopes change gradually."""


class _Draw:
    """The layers drawn so far, and the shape of what comes out of them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"network {seed}")
        self.layers: list[Layer] = []
        self.smooth = self.rng.random() < 0.7
        kind = self.rng.choice(["image", "image", "sequence", "rows"])
        batch = self.rng.choice([1, 2, 4, 8])
        if kind == "image":
            side = self.rng.choice([7, 8, 13, 16, 25, 32])
            self.shape = batch, self.rng.choice([1, 3, 8, 16, 32]), side, side
        elif kind == "sequence":
            self.shape = batch, self.rng.choice([5, 16, 33, 64]), self.rng.choice([16, 48, 64, 128])
        else:
            self.shape = self.rng.choice([4, 32, 100]), self.rng.choice([10, 64, 200, 512])
        self.start = self.shape

    def add(
        self, name: str, shapes: Sequence[tuple[int, ...]], run: Callable[..., Any], *out: int
    ) -> None:
        self.layers.append(Layer(name, shapes, run))
        if out:
            self.shape = out

    def activation(self) -> None:
        """An activation, or a scale of each feature, a softmax or a residual step."""
        names = [*SMOOTH] if self.smooth else [*SMOOTH, "relu", "leaky_relu", "hardtanh"]
        name = self.rng.choice([*names, "scale", "softmax", "residual"])
        if name == "scale":
            rank = len(self.shape)
            axes = [a for a in range(1, rank) if self.rng.random() < 0.6] or [rank - 1]
            shape = tuple([n if a in axes else 1 for a, n in enumerate(self.shape)])[1:]
            self.add(f"scale{shape}", [shape], lambda x, w: x * (1 + 0.3 * w))
        elif name == "softmax":
            axis = self.rng.randrange(1, len(self.shape))
            self.add(
                f"softmax({axis})", [], lambda x: snp.sqrt(x.shape[axis]) * F.softmax(x, dim=axis)
            )
        elif name == "residual":
            self.add("residual", [], lambda x: x + snp.tanh(x))
        else:
            self.add(name, [], getattr(F, name))

    def image(self) -> None:
        """One layer for images of shape (batch, channels, height, width)."""
        rng = self.rng
        batch, channels, height, width = self.shape
        kinds = ["conv", "conv", "conv transpose", "resize", "norm", "activation", "activation"]
        kinds += ["pool", "rows of pixels", "shuffle", "pad", "gather channels"]
        kind = rng.choice(kinds if self.smooth else [*kinds, "sort", "max pool"])
        if kind == "activation":
            return self.activation()
        small = min(height, width)
        if kind == "conv":
            k = rng.choice([n for n in (1, 3, 3, 5, 7) if n <= small])
            groups = rng.choice([g for g in (1, 1, 1, 2, channels) if channels % g == 0])
            dilation = rng.choice([1, 1, 2]) if 2 * (k - 1) + 1 <= small else 1
            stride, padding = rng.choice([1, 1, 2]), rng.choice([0, k // 2])
            out = groups * rng.choice([1, 2]) if groups > 2 else groups * rng.choice([4, 8, 16, 32])
            size = (
                (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for n in (height, width)
            )
            return self.add(
                f"conv(k={k}, stride={stride}, padding={padding}, groups={groups}, "
                f"dilation={dilation}, out={out})",
                [(out, channels // groups, k, k), (out,)],
                lambda x, w, b: F.conv2d(
                    x, w / math.sqrt(w[0].size), b, stride, padding, dilation, groups
                ),
                *(batch, out, *size),
            )
        if kind == "conv transpose" and small <= 16:
            k, stride = rng.choice([(2, 2), (3, 1), (4, 2), (3, 2)])
            out = rng.choice([1, 4, 8, 16])
            size = ((n - 1) * stride + k for n in (height, width))
            return self.add(
                f"conv transpose(k={k}, stride={stride}, out={out})",
                [(channels, out, k, k), (out,)],
                lambda x, w, b: F.conv_transpose2d(x, w / math.sqrt(channels * k), b, stride),
                *(batch, out, *size),
            )
        if kind == "resize" and small <= 25:
            mode = rng.choice(["bilinear", "bicubic", "nearest"])
            size = tuple([max(1, round(n * rng.choice([0.5, 1.5, 2]))) for n in (height, width)])
            corners = rng.choice([True, False]) if mode != "nearest" else None
            return self.add(
                f"resize({mode}, {size}, {corners})",
                [],
                lambda x: F.interpolate(x, size, mode=mode, align_corners=corners),
                *(batch, channels, *size),
            )
        if kind == "norm":
            groups = rng.choice([g for g in (1, 2, 4, channels) if channels % g == 0])
            if rng.random() < 0.5 and batch * height * width > 16:
                return self.add(
                    "batch norm",
                    [(channels,), (channels,)],
                    lambda x, w, b: F.batch_norm(x, None, None, 1 + 0.3 * w, b, True, eps=1e-2),
                )
            return self.add(
                f"group norm({groups})",
                [(channels,), (channels,)],
                lambda x, w, b: F.group_norm(x, groups, 1 + 0.3 * w, b, eps=1e-2),
            )
        if kind in ("pool", "max pool") and small >= 4:
            k = rng.choice([2, 3])
            pool = F.avg_pool2d if kind == "pool" else F.max_pool2d
            return self.add(
                f"{kind}({k}, 2)",
                [],
                lambda x: pool(x, k, 2),
                *(batch, channels, *((n - k) // 2 + 1 for n in (height, width))),
            )
        if kind == "rows of pixels":
            return self.add(
                "rows of pixels",
                [],
                lambda x: snp.swapaxes(x.reshape(batch, channels, -1), 1, 2),
                *(batch, height * width, channels),
            )
        if kind == "shuffle" and channels % 4 == 0:
            return self.add(
                "pixel shuffle",
                [],
                lambda x: F.pixel_shuffle(x, 2),
                *(batch, channels // 4, 2 * height, 2 * width),
            )
        if kind == "pad":
            mode = rng.choice(["constant", "reflect", "replicate", "circular"])
            return self.add(
                f"pad({mode})",
                [],
                lambda x: F.pad(x, (1, 0, 0, 1), mode),
                *(batch, channels, height + 1, width + 1),
            )
        if kind == "gather channels":
            rows = np.array([rng.randrange(channels) for _ in range(rng.choice([4, 8]))])
            return self.add(
                "gather channels",
                [],
                lambda x: snp.take(x, rows, axis=1),
                *(batch, len(rows), height, width),
            )
        if kind == "sort":
            return self.add("sort(-1)", [], lambda x: snp.sort(x, axis=-1))
        return self.activation()

    def sequence(self) -> None:
        """One layer for sequences of shape (batch, length, features)."""
        rng = self.rng
        batch, length, features = self.shape
        kinds = ["linear", "linear", "attention", "norm", "activation", "scan", "conv1d", "mean"]
        kind = rng.choice([*kinds, "cumsum", "gram", "mix", "constant"])
        if kind == "linear":
            out = rng.choice([16, 64, 130])
            return self.add(
                f"linear({out})",
                [(out, features), (out,)],
                lambda x, w, b: F.linear(x, w / math.sqrt(features), b),
                *(batch, length, out),
            )
        if kind == "attention" and features % 4 == 0:
            heads, causal = rng.choice([1, 2, 4]), rng.random() < 0.5

            def attend(x: Any, w: Any) -> Any:
                q, k, v = snp.split(x @ (w / math.sqrt(features)), 3, axis=-1)
                parts = [snp.swapaxes(a.reshape(batch, length, heads, -1), 1, 2) for a in (q, k, v)]
                out = F.scaled_dot_product_attention(*parts, is_causal=causal)
                return x + snp.swapaxes(out, 1, 2).reshape(batch, length, features)

            return self.add(
                f"attention(heads={heads}, causal={causal})", [(features, 3 * features)], attend
            )
        if kind == "norm":
            name = rng.choice(["layer_norm", "rms_norm"])
            if name == "rms_norm":
                return self.add(
                    name, [(features,)], lambda x, w: F.rms_norm(x, features, 1 + 0.3 * w, 1e-2)
                )
            return self.add(
                name,
                [(features,), (features,)],
                lambda x, w, b: F.layer_norm(x, features, 1 + 0.3 * w, b, 1e-2),
            )
        if kind == "scan" and length <= 33:
            size = rng.choice([8, 32])

            def scan(x: Any, w: Any, u: Any) -> Any:
                def step(h: Any, row: Any) -> tuple[Any, Any]:
                    h = snp.tanh(row @ (w / math.sqrt(features)) + h @ (u / math.sqrt(size)))
                    return h, h

                start = snp.zeros((batch, size), x.dtype)
                return snp.swapaxes(lax.scan(step, start, snp.swapaxes(x, 0, 1))[1], 0, 1)

            return self.add(
                f"scan({size})", [(features, size), (size, size)], scan, *(batch, length, size)
            )
        if kind == "conv1d":
            out = rng.choice([8, 32])
            return self.add(
                f"conv1d({out})",
                [(out, features, 3)],
                lambda x, w: snp.swapaxes(
                    F.conv1d(snp.swapaxes(x, 1, 2), w / math.sqrt(3 * features), padding=1), 1, 2
                ),
                *(batch, length, out),
            )
        if kind == "mean":
            return self.add("mean(1)", [], lambda x: snp.mean(x, axis=1), batch, features)
        if kind == "cumsum":
            scale = np.sqrt(np.arange(1, length + 1))[:, None]
            return self.add("cumsum", [], lambda x: snp.cumsum(x, axis=1) / scale.astype(x.dtype))
        if kind == "gram":
            return self.add(
                "gram",
                [],
                lambda x: snp.matmul(x, snp.swapaxes(x, 1, 2)) / features,
                *(batch, length, length),
            )
        if kind == "mix":
            out = rng.choice([8, 50])
            return self.add(
                f"mix({out})",
                [(out, length)],
                lambda x, w: snp.einsum("btd,st->bsd", x, w) / math.sqrt(length),
                *(batch, out, features),
            )
        if kind == "constant":
            return self.add(
                "product of ones",
                [],
                lambda x: x + x @ snp.full((features, features), 1 / features, x.dtype).T,
            )
        return self.activation()

    def rows(self) -> None:
        """One layer for rows of shape (batch, features)."""
        rng = self.rng
        batch, features = self.shape
        kind = rng.choice(["linear", "linear", "activation", "norm", "outer", "gather", "bilinear"])
        if kind == "linear":
            out, turned = rng.choice([8, 64, 200]), rng.random() < 0.5
            if turned:
                return self.add(
                    f"x @ w({out})",
                    [(features, out)],
                    lambda x, w: x @ (w / math.sqrt(features)),
                    *(batch, out),
                )
            return self.add(
                f"linear({out})",
                [(out, features), (out,)],
                lambda x, w, b: F.linear(x, w / math.sqrt(features), b),
                *(batch, out),
            )
        if kind == "norm":
            return self.add(
                "layer_norm",
                [(features,), (features,)],
                lambda x, w, b: F.layer_norm(x, features, 1 + 0.3 * w, b, 1e-2),
            )
        if kind == "outer" and features <= 64:
            return self.add(
                "outer", [], lambda x: x[:, :, None] * x[:, None, :], batch, features, features
            )
        if kind == "gather":
            rows = np.array([rng.randrange(features) for _ in range(rng.choice([8, 50]))])
            return self.add("gather", [], lambda x: x[:, rows], batch, len(rows))
        if kind == "bilinear" and features <= 64:
            return self.add(
                "bilinear(8)",
                [(8, features, features)],
                lambda x, w: snp.einsum("bi,oij,bj->bo", x, w, x) / features,
                *(batch, 8),
            )
        return self.activation()


def draw_network(seed: int, layers: int = 6, most: int = 200_000) -> Network:
    """Draw a network of at most so many layers, whose arrays have at most so many elements."""
    draw = _Draw(seed)
    by_rank = {2: draw.rows, 3: draw.sequence, 4: draw.image}
    for _ in range(draw.rng.randint(2, layers)):
        kept, shape = [*draw.layers], draw.shape
        by_rank[len(draw.shape)]()
        if min(draw.shape) < 1 or math.prod(draw.shape) > most:
            draw.layers, draw.shape = kept, shape
    return Network(draw.layers, draw.start, draw.smooth)
