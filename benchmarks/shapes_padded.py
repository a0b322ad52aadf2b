"""Batches of different lengths as one writes them by hand: rectangles, padded, with masks.

In NumPy's vocabulary: `np` is `jax.numpy` or `stretto.numpy`. A model takes its weights, the
rectangle `[example, element, feature]`, and the lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.workloads_shapes import HEADS, WIDTH

__all__ = ["Padded"]


class Padded:
    """The models; `scan`, `softmax` and `gelu` are the framework's."""

    def __init__(self, np: Any, scan: Any, softmax: Any, gelu: Any, sigmoid: Any) -> None:
        """What the framework has, of which models are made."""
        self.np, self.scan = np, scan
        self.softmax, self.gelu, self.sigmoid = softmax, gelu, sigmoid

    def apply(self, model: str) -> Callable[[Any, Any, Any], Any]:
        """The model of this name."""
        return getattr(self, model)

    def loss(self, model: str) -> Callable[[Any, Any, Any], Any]:
        """The mean over examples of the mean square of what is valid."""
        np, apply = self.np, self.apply(model)

        def of_elements(weights: Any, x: Any, lengths: Any) -> Any:
            squares = (apply(weights, x, lengths) ** 2).mean(-1)
            inside = self.inside(x, lengths)
            return (np.where(inside, squares, 0).sum(-1) / lengths).mean()

        def of_examples(weights: Any, x: Any, lengths: Any) -> Any:
            return (apply(weights, x, lengths) ** 2).mean()

        return of_elements if model in ("attention", "block") else of_examples

    def inside(self, x: Any, lengths: Any) -> Any:
        """Which elements are not padding, `[example, element]`."""
        return self.np.arange(x.shape[1])[None] < lengths[:, None]

    def attention(self, weights: Any, x: Any, lengths: Any) -> Any:
        """Self-attention with several heads; padding is no key."""
        np, (count, n, _) = self.np, x.shape
        shape = (count, n, HEADS, WIDTH // HEADS)
        q, k, v = [(x @ weights[name]).reshape(shape) for name in "qkv"]
        scores = np.einsum("bnhd,bmhd->bhnm", q, k) * (WIDTH // HEADS) ** -0.5
        keys = self.inside(x, lengths)[:, None, None]
        shares = self.softmax(np.where(keys, scores, -np.inf), -1)
        mixed = np.einsum("bhnm,bmhd->bnhd", shares, v)
        return mixed.reshape(count, n, WIDTH) @ weights["o"]

    def norm(self, x: Any, scale: Any, bias: Any) -> Any:
        """Layer norm of the features."""
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return centred / self.np.sqrt(variance + 1e-5) * scale + bias

    def mlp(self, weights: Any, x: Any) -> Any:
        """Two layers with GELU between."""
        return self.gelu(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]

    def block(self, weights: Any, x: Any, lengths: Any) -> Any:
        """A transformer's block, norms first."""
        w = weights
        x = x + self.attention(w, self.norm(x, w["scale1"], w["bias1"]), lengths)
        return x + self.mlp(w, self.norm(x, w["scale2"], w["bias2"]))

    def lstm(self, weights: Any, x: Any, lengths: Any) -> Any:
        """The hidden state after the last valid element."""
        np, count = self.np, x.shape[0]
        inputs = (x @ weights["input"] + weights["bias"]).swapaxes(0, 1)

        def step(state: Any, row: Any) -> Any:
            h, c = state
            i, f, g, o = np.split(row + h @ weights["hidden"], 4, -1)
            c = self.sigmoid(f) * c + self.sigmoid(i) * np.tanh(g)
            h = self.sigmoid(o) * np.tanh(c)
            return (h, c), h

        zeros = np.zeros((count, WIDTH), x.dtype)
        _, states = self.scan(step, (zeros, zeros), inputs)
        return states[lengths - 1, np.arange(count)]

    def pool(self, weights: Any, x: Any, lengths: Any) -> Any:
        """The MLP of the mean."""
        total = self.np.where(self.inside(x, lengths)[..., None], x, 0).sum(1)
        return self.mlp(weights, total / lengths[:, None])
