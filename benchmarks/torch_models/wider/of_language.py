"""Language models of transformers whose training is not compared elsewhere here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import transformers

from benchmarks.torch_models.model import Call, Model, tokens

__all__ = ["MODELS", "made"]

_Inputs = Callable[[], dict[str, Any]]

_SIZES = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""What most configurations call their sizes."""

_GROUPED = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8}

_EXPERTS = {
    **_GROUPED,
    "moe_intermediate_size": 32,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "experts_implementation": "batched_mm",
}
"""PyTorch has no grouped products in float64."""

_BOTH = {
    "vocab_size": 100,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
"""The same, of an encoder with a decoder."""

_T5 = {
    "vocab_size": 100,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 1,
}

_GPT = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}


def made(name: str, config: str, sizes: Mapping[str, Any], inputs: _Inputs) -> Call:
    """The model of this configuration, and its inputs."""
    module = getattr(transformers, name)(getattr(transformers, config)(**sizes))
    return Call(module, (), inputs())


def _text(length: int = 12) -> dict[str, Any]:
    mask = _ones(length)
    mask[1, length - 3 :] = 0
    return {"input_ids": tokens(length), "attention_mask": mask}


def _next(length: int = 8) -> dict[str, Any]:
    return {"input_ids": tokens(length), "use_cache": False}


def _plain(length: int = 8) -> dict[str, Any]:
    return {"input_ids": tokens(length)}


def _pair() -> dict[str, Any]:
    return {"input_ids": tokens(), "decoder_input_ids": tokens(7), "use_cache": False}


def _masked_pair() -> dict[str, Any]:
    """With the masks that some models only make of themselves where they are not exported."""
    masks = {"attention_mask": _text()["attention_mask"], "decoder_attention_mask": _ones(7)}
    return {**_pair(), "input_ids": tokens(12), **masks}


def _ones(length: int) -> torch.Tensor:
    return torch.ones(2, length, dtype=torch.long)


def _boxed() -> dict[str, Any]:
    low = torch.randint(0, 50, (2, 12, 2))
    return {**_text(), "bbox": torch.cat([low, low + torch.randint(1, 20, (2, 12, 2))], -1)}


_ALL: dict[str, tuple[str, str, dict[str, Any], _Inputs]] = {
    # Decoders.
    "falcon": ("FalconForCausalLM", "FalconConfig", {**_SIZES, "alibi": True}, _next),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", _GROUPED, _next),
    "cohere": ("CohereForCausalLM", "CohereConfig", _GROUPED, _next),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", _GROUPED, _next),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", _GROUPED, _next),
    "persimmon": ("PersimmonForCausalLM", "PersimmonConfig", _SIZES, _next),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", _GROUPED, _next),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", _GROUPED, _next),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", _EXPERTS, _next),
    "olmoe": ("OlmoeForCausalLM", "OlmoeConfig", _EXPERTS, _next),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {
            **_SIZES,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 16,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "first_k_dense_replace": 1,
            "q_lora_rank": 16,
            "kv_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "experts_implementation": "batched_mm",
        },
        _next,
    ),
    "granite": ("GraniteForCausalLM", "GraniteConfig", _GROUPED, _next),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", _GROUPED, _next),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", _GROUPED, _next),
    "glm": ("GlmForCausalLM", "GlmConfig", _GROUPED, _next),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", {**_GPT, "rotary_dim": 4}, _next),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", {**_GPT, "rotary_dim": 4}, _next),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", _GPT, _next),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_layers": 2,
            "attention_types": [[["global", "local"], 1]],
            "num_heads": 4,
            "window_size": 4,
        },
        _next,
    ),
    "ctrl": ("CTRLLMHeadModel", "CTRLConfig", {**_GPT, "dff": 64, "n_ctx": 64}, _next),
    "mpt": (
        "MptForCausalLM",
        "MptConfig",
        {"vocab_size": 100, "d_model": 32, "n_layers": 2, "n_heads": 4},
        _next,
    ),
    "xglm": (
        "XGLMForCausalLM",
        "XGLMConfig",
        {"vocab_size": 100, "d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64},
        _next,
    ),
    "rwkv": (
        "RwkvForCausalLM",
        "RwkvConfig",
        {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 16},
        partial(_next, 4),
    ),
    "mamba2": (
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "state_size": 8,
            "num_heads": 8,
            "head_dim": 8,
            "n_groups": 2,
            "chunk_size": 4,
        },
        _next,
    ),
    "recurrent_gemma": (
        "RecurrentGemmaForCausalLM",
        "RecurrentGemmaConfig",
        {
            **_SIZES,
            "num_hidden_layers": 3,
            "num_key_value_heads": 1,
            "lru_width": 32,
            "attention_window_size": 8,
        },
        partial(_next, 4),
    ),
    # Encoders.
    "xlnet": (
        "XLNetModel",
        "XLNetConfig",
        {"vocab_size": 100, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
        _text,
    ),
    "longformer": ("LongformerModel", "LongformerConfig", {**_SIZES, "attention_window": 4}, _text),
    "big_bird": (
        "BigBirdModel",
        "BigBirdConfig",
        {**_SIZES, "attention_type": "original_full"},
        _text,
    ),
    "funnel": (
        "FunnelModel",
        "FunnelConfig",
        {
            "vocab_size": 100,
            "block_sizes": [1, 1],
            "num_decoder_layers": 1,
            "d_model": 32,
            "n_head": 4,
            "d_head": 8,
            "d_inner": 64,
        },
        _text,
    ),
    "fnet": ("FNetModel", "FNetConfig", {**_SIZES, "use_tpu_fourier_optimizations": False}, _plain),
    "convbert": ("ConvBertModel", "ConvBertConfig", {**_SIZES, "embedding_size": 16}, _text),
    "squeezebert": (
        "SqueezeBertModel",
        "SqueezeBertConfig",
        {**_SIZES, "embedding_size": 32},
        _text,
    ),
    "nystromformer": (
        "NystromformerModel",
        "NystromformerConfig",
        {**_SIZES, "num_landmarks": 4, "segment_means_seq_len": 12},
        partial(_plain, 12),
    ),
    "roformer": ("RoFormerModel", "RoFormerConfig", {**_SIZES, "embedding_size": 16}, _text),
    "deberta": (
        "DebertaModel",
        "DebertaConfig",
        {**_SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        _text,
    ),
    "reformer": (
        "ReformerModel",
        "ReformerConfig",
        {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_attention_heads": 4,
            "attention_head_size": 8,
            "feed_forward_size": 64,
            "attn_layers": ["local", "local"],
            "local_attn_chunk_length": 4,
            "axial_pos_shape": [4, 4],
            "axial_pos_embds_dim": [16, 16],
        },
        partial(_plain, 16),
    ),
    "mobilebert": (
        "MobileBertModel",
        "MobileBertConfig",
        {**_SIZES, "embedding_size": 16, "intra_bottleneck_size": 16},
        _text,
    ),
    "canine": (
        "CanineModel",
        "CanineConfig",
        {**_SIZES, "local_transformer_stride": 4, "downsampling_rate": 4, "num_hash_buckets": 64},
        partial(_plain, 16),
    ),
    "layoutlm": (
        "LayoutLMModel",
        "LayoutLMConfig",
        {**_SIZES, "max_2d_position_embeddings": 128},
        _boxed,
    ),
    "xlm": (
        "XLMModel",
        "XLMConfig",
        {"vocab_size": 100, "emb_dim": 32, "n_layers": 2, "n_heads": 4},
        _plain,
    ),
    "ibert": ("IBertModel", "IBertConfig", _SIZES, _text),
    "rembert": (
        "RemBertModel",
        "RemBertConfig",
        {**_SIZES, "input_embedding_size": 16, "output_embedding_size": 16},
        _text,
    ),
    "esm": (
        "EsmModel",
        "EsmConfig",
        {**_SIZES, "position_embedding_type": "rotary", "mask_token_id": 3},
        _text,
    ),
    # Both.
    "pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", _BOTH, _pair),
    "marian": ("MarianMTModel", "MarianConfig", _BOTH, _pair),
    "mbart": ("MBartForConditionalGeneration", "MBartConfig", _BOTH, _pair),
    "m2m_100": ("M2M100ForConditionalGeneration", "M2M100Config", _BOTH, _pair),
    "blenderbot": ("BlenderbotForConditionalGeneration", "BlenderbotConfig", _BOTH, _pair),
    "led": (
        "LEDForConditionalGeneration",
        "LEDConfig",
        {
            **_BOTH,
            "attention_window": 4,
            "max_encoder_position_embeddings": 64,
            "max_decoder_position_embeddings": 64,
        },
        _pair,
    ),
    "prophetnet": (
        "ProphetNetForConditionalGeneration",
        "ProphetNetConfig",
        {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "max_position_embeddings": 64,
            "ngram": 2,
        },
        _pair,
    ),
    "mt5": ("MT5ForConditionalGeneration", "MT5Config", _T5, _pair),
    "longt5": (
        "LongT5ForConditionalGeneration",
        "LongT5Config",
        {**_T5, "local_radius": 3, "encoder_attention_type": "local"},
        _masked_pair,
    ),
}


def _switch() -> Call:
    """With routers in the precision of the rest."""
    sizes = {
        **_T5,
        "num_experts": 2,
        "num_sparse_encoder_layers": 1,
        "num_sparse_decoder_layers": 1,
        "router_jitter_noise": 0.0,
    }
    name = "SwitchTransformersForConditionalGeneration"
    call = made(name, "SwitchTransformersConfig", sizes, _masked_pair)
    for part in call.module.modules():
        if isinstance(getattr(part, "dtype", None), torch.dtype) and hasattr(part, "classifier"):
            part.dtype = torch.float64  # pyright: ignore[reportAttributeAccessIssue]
    return call


MODELS = [
    *[Model(f"language/{name}", partial(made, *about)) for name, about in _ALL.items()],
    Model("language/switch", _switch),
]
