"""Networks of tokens in Stretto: transformers, with cached decoding, and a recurrent network."""

from __future__ import annotations

from typing import Any

import stretto.numpy as snp
from stretto import nn
from stretto.nn import functional as F

__all__ = ["MODELS", "decode"]


class Attention(nn.Module):
    """Several heads of self-attention, from one product for queries, keys and values."""

    def __init__(self, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x: Any) -> Any:
        query, key, value = self.split(x)
        return self.join(F.scaled_dot_product_attention(query, key, value, is_causal=self.causal))

    def step(self, x: Any, cache: Any, position: Any) -> Any:
        """One token (B, 1, width), beside the keys and values of those before it."""
        query, key, value = self.split(x)
        cache = cache.at[:, :, :, position].set(snp.stack([key, value])[:, :, :, 0])
        seen = snp.arange(cache.shape[3]) <= position
        mixed = F.scaled_dot_product_attention(query, cache[0], cache[1], attn_mask=seen)
        return self.join(mixed), cache

    def split(self, x: Any) -> Any:
        """Queries, keys and values, each (B, heads, T, width of a head)."""
        batch, length, width = x.shape
        parts = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        return snp.moveaxis(parts, (2, 3), (0, 2))

    def join(self, x: Any) -> Any:
        """The heads' results (B, heads, T, width of a head), mixed."""
        batch, heads, length, width = x.shape
        return self.out(x.swapaxes(1, 2).reshape(batch, length, heads * width))


class Block(nn.Module):
    """Attention and two dense layers, normalized before each or, in BERT, after."""

    def __init__(
        self, width: int, heads: int, gelu: str, eps: float, causal: bool, after: bool = False
    ) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=eps)
        self.attn = Attention(width, heads, causal)
        self.ln_2 = nn.LayerNorm(width, eps=eps)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        self.gelu, self.after = gelu, after

    def forward(self, x: Any) -> Any:
        if self.after:
            x = self.ln_1(x + self.attn(x))
            return self.ln_2(x + self.dense(x))
        x = x + self.attn(self.ln_1(x))
        return x + self.dense(self.ln_2(x))

    def step(self, x: Any, cache: Any, position: Any) -> Any:
        """One token, and the cache with it."""
        mixed, cache = self.attn.step(self.ln_1(x), cache, position)
        x = x + mixed
        return x + self.dense(self.ln_2(x)), cache

    def dense(self, x: Any) -> Any:
        """The two layers."""
        return self.fc2(F.gelu(self.fc1(x), approximate=self.gelu))


class ViT(nn.Module):
    """Dosovitskiy et al. (2021), with a token for the class."""

    def __init__(
        self, size: int, patch: int, width: int, layers: int, heads: int, classes: int
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.cls_token = nn.Parameter(snp.zeros((1, 1, width)))
        self.positions = nn.Parameter(snp.zeros((1, (size // patch) ** 2 + 1, width)))
        self.blocks = nn.Sequential(
            *(Block(width, heads, "none", 1e-6, causal=False) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        x = self.patches(x)
        x = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)
        first = snp.broadcast_to(self.cls_token, (x.shape[0], 1, x.shape[2]))
        x = snp.concatenate([first, x], axis=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class GPT2(nn.Module):
    """Radford et al. (2019); the outputs' weights are the embeddings."""

    def __init__(
        self, vocabulary: int, positions: int, width: int, heads: int, layers: int
    ) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(
            Block(width, heads, "tanh", 1e-5, causal=True) for _ in range(layers)
        )
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens: Any) -> Any:
        x = self.wte(tokens) + self.wpe(snp.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T

    def step(self, tokens: Any, cache: Any, position: Any) -> Any:
        """Outputs for one token (B,), and the cache (layers, 2, B, heads, T, …) with it."""
        x = (self.wte(tokens) + self.wpe(position))[:, None]
        new = []
        for block, one in zip(self.blocks, cache):
            x, one = block.step(x, one, position)
            new.append(one)
        return self.ln_f(x[:, 0]) @ self.wte.weight.T, snp.stack(new)


class BERT(nn.Module):
    """Devlin et al. (2019): embeddings and encoder, all tokens of the first segment."""

    def __init__(
        self, vocabulary: int, positions: int, width: int, heads: int, layers: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.Sequential(
            *(Block(width, heads, "none", 1e-12, False, after=True) for _ in range(layers))
        )

    def forward(self, tokens: Any) -> Any:
        places = self.positions(snp.arange(tokens.shape[1]))
        return self.blocks(self.norm(self.words(tokens) + places + self.types.weight[0]))


class LSTM(nn.Module):
    """A recurrent language model."""

    def __init__(self, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens: Any) -> Any:
        return self.out(self.lstm(self.embedding(tokens))[0])


def decode(model: Any, tokens: Any, cache: Any, position: Any) -> Any:
    """The most probable next tokens, the cache with the present ones, and the outputs."""
    logits, cache = model.step(tokens, cache, position)
    return snp.argmax(logits, axis=-1).astype(snp.int32), cache, logits


MODELS = {"vit": ViT, "gpt2": GPT2, "bert": BERT, "lstm": LSTM}
