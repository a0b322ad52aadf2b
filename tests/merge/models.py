"""Models in files, for the tests of merging."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

import stretto as st
from stretto.merge.methods import METHODS

HIDDEN, LAYERS, WORDS = 24, 4, 50


def shapes():
    """The tensors of a small language model, by the names of transformers."""
    found = {"model.embed_tokens.weight": (WORDS, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for i in range(LAYERS):
        prefix = f"model.layers.{i}."
        found[prefix + "input_layernorm.weight"] = (HIDDEN,)
        found[prefix + "self_attn.q_proj.weight"] = (HIDDEN, HIDDEN)
        found[prefix + "mlp.up_proj.weight"] = (2 * HIDDEN, HIDDEN)
    found["lm_head.weight"] = (WORDS, HIDDEN)
    return found


def draw(seed, *, near=None, far=0.1, dtype=np.float32):
    """Weights at random, or those of another model moved a little."""
    rng = np.random.default_rng(seed)
    return {
        name: (
            rng.standard_normal(shape) if near is None
            else near[name].astype(np.float64) + far * rng.standard_normal(shape)
        ).astype(dtype)
        for name, shape in shapes().items()
    }  # fmt: skip


def family(folder: Path, *names, dtype=np.float32, extra=None):
    """Write a base and models near it to files; return the paths and the weights by name."""
    base = draw(0, dtype=dtype) | (extra or {})
    weights = {"base": base}
    for i, name in enumerate(names, 1):
        weights[name] = draw(i, near=base, dtype=dtype) | (extra or {})
    paths = {}
    for name, tensors in weights.items():
        paths[name] = str(folder / f"{name}.safetensors")
        save_file(tensors, paths[name])
    return paths, weights


def own_methods():
    """The methods that are not a user's, such as those that other tests make."""
    return {
        name: how
        for name, how in st.merge.METHODS.items()
        if not how.combine.__qualname__.startswith("method.")
    }


def as_folder(folder: Path, tensors, *, shards=1, **configuration):
    """Write a model as transformers does: shards with an index, a configuration, a tokenizer."""
    folder.mkdir(parents=True)
    said = {"model_type": "llama", "num_hidden_layers": LAYERS, "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(said | configuration))
    (folder / "tokenizer.json").write_text("{}")
    names = list(tensors)
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return str(folder)
    places = {}
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        own = names[i::shards]
        save_file({n: tensors[n] for n in own}, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(own, file)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return str(folder)


def beside(method, weights, seed=7):
    """What a method has beside models with these weights: its key, and the tensors for each."""
    kind = METHODS[method].beside
    if kind is None:
        return None, []
    rng = np.random.default_rng(seed)
    found = []
    for tensors in weights:
        if kind.of_inputs:
            inputs = {
                k: rng.standard_normal((3 * x.shape[1], x.shape[1]))
                for k, x in tensors.items() if x.ndim == 2 and "embed" not in k
            }  # fmt: skip
            found.append({k: (x.T @ x).astype(np.float32) for k, x in inputs.items()})
        else:
            found.append({
                k: rng.standard_exponential(x.shape).astype(np.float32)
                for k, x in tensors.items()
            })  # fmt: skip
    return kind.key, found


def with_beside(method, paths, weights, folder: Path):
    """The models of a recipe, with files beside them where the method has such files."""
    key, found = beside(method, weights)
    models = [{"path": path} for path in paths]
    for i, tensors in enumerate(found):
        models[i][key] = str(folder / f"{key}{i}.safetensors")
        save_file(tensors, models[i][key])
    return models


read = load_file
