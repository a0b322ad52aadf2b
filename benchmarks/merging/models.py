"""Models to merge: shards with an index and a configuration, as transformers writes a Llama.

The numbers are random, and those of a tuned model are near those of the base. They are drawn block
by block, so that models of any size take little memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np

__all__ = ["DTYPES", "SIZES", "Shape", "tensors", "write"]

DTYPES = {"bfloat16": ("BF16", np.dtype(ml_dtypes.bfloat16)), "float32": ("F32", np.dtype("f4"))}
"""The dtypes of models, with the format's codes."""

SHARD = 100_000_000
"""The most bytes of a shard."""
BLOCK = 1 << 20
"""Elements that are drawn at once."""


class Shape(NamedTuple):
    """The sizes of a Llama."""

    width: int
    inner: int
    vocabulary: int
    layers: int

    @property
    def elements(self) -> int:
        """Return how many elements the model has."""
        return sum(math.prod(shape) for _, shape in tensors(self))


SIZES = {
    "tiny": Shape(64, 160, 500, 2),
    "0.3": Shape(1024, 2816, 32000, 6),
    "3": Shape(2048, 5632, 32000, 27),
    "10": Shape(4096, 11008, 32000, 23),
    "embedding": Shape(4096, 64, 128_000, 1),
}
"""Models by gigabytes in bfloat16; the last has one large tensor, of the size of Llama 3's."""


def tensors(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Give names and shapes of the tensors."""
    width, inner, vocabulary, layers = shape
    yield "model.embed_tokens.weight", (vocabulary, width)
    for k in range(layers):
        layer = f"model.layers.{k}"
        for name in "qkvo":
            yield f"{layer}.self_attn.{name}_proj.weight", (width, width)
        yield f"{layer}.mlp.gate_proj.weight", (inner, width)
        yield f"{layer}.mlp.up_proj.weight", (inner, width)
        yield f"{layer}.mlp.down_proj.weight", (width, inner)
        yield f"{layer}.input_layernorm.weight", (width,)
        yield f"{layer}.post_attention_layernorm.weight", (width,)
    yield "model.norm.weight", (width,)
    yield "lm_head.weight", (vocabulary, width)


def configuration(shape: Shape, dtype: str) -> dict[str, object]:
    """Return what ``config.json`` says."""
    heads = max(shape.width // 64, 1)
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": dtype,
        "hidden_size": shape.width, "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers, "vocab_size": shape.vocabulary,
        "num_attention_heads": heads, "num_key_value_heads": heads, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 2048, "tie_word_embeddings": False,
    }  # fmt: skip


def write(folder: Path, shape: Shape, dtype: str, tuned: int = 0) -> None:
    """Write a model, unless it is there: the base, or the tuned one of a number from 1 on."""
    done = folder / "config.json"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    code, kind = DTYPES[dtype]
    groups: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    size = 0
    for name, own in tensors(shape):
        nbytes = math.prod(own) * kind.itemsize
        if groups[-1] and size + nbytes > SHARD:
            groups.append([])
            size = 0
        groups[-1].append((name, own))
        size += nbytes
    places: dict[str, str] = {}
    for k, group in enumerate(groups, 1):
        file = f"model-{k:05d}-of-{len(groups):05d}.safetensors"
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        at = 0
        for name, own in group:
            end = at + math.prod(own) * kind.itemsize
            header[name] = {"dtype": code, "shape": own, "data_offsets": [at, end]}
            places[name] = file
            at = end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with (folder / file).open("wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for name, own in group:
                for block in numbers(name, math.prod(own), tuned):
                    out.write(block.astype(kind).tobytes())
    index = {"metadata": {"total_size": shape.elements * kind.itemsize}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    done.write_text(json.dumps(configuration(shape, dtype), indent=2))


def numbers(name: str, size: int, tuned: int) -> Iterator[np.ndarray]:
    """Give a tensor's numbers in float32, block by block."""
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        where = [*name.encode(), start // BLOCK]
        block = np.random.default_rng([0, *where]).standard_normal(count, np.float32) * 0.02
        if tuned:
            moved = np.random.default_rng([tuned, *where]).standard_normal(count, np.float32)
            block += moved * 0.002
        yield block
