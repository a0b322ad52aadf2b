"""Where PyTorch is known to be wrong, and what has no case, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.parity.case import Case, Layer, cotangent

__all__ = ["WITHOUT_CASE", "Fault", "fault_of"]

RESIZING = ("interpolate", "upsample", "Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d")

OWN_DRAWS = "it always draws, and the two draw other numbers"
NOT_FUNCTIONAL = "PyTorch has it outside of nn.functional; the layer {} compares it"

WITHOUT_CASE = {
    "Module": "the base class: every layer compares it",
    "gumbel_softmax": OWN_DRAWS,
    "batch_statistics": "PyTorch has none: what it writes into buffers; BatchNorm compares it",
    "one_hot": "it has neither floats nor gradients: its test holds it to the definition",
    "logsumexp": "PyTorch has it outside of nn.functional; the samples of operations compare it",
    "flatten": NOT_FUNCTIONAL.format("Flatten"),
    "unflatten": NOT_FUNCTIONAL.format("Unflatten"),
    **{name: NOT_FUNCTIONAL.format("RNN") for name in ("rnn_tanh", "rnn_relu")},
    **{name: NOT_FUNCTIONAL.format("RNNCell") for name in ("rnn_tanh_cell", "rnn_relu_cell")},
    "lstm": NOT_FUNCTIONAL.format("LSTM"),
    "lstm_cell": NOT_FUNCTIONAL.format("LSTMCell"),
    "gru": NOT_FUNCTIONAL.format("GRU"),
    "gru_cell": NOT_FUNCTIONAL.format("GRUCell"),
}
"""Layers and functions of `stretto.nn` that no family makes cases of."""


@dataclass(frozen=True)
class Fault:
    """What PyTorch does wrong in a case: its gradients, or everything."""

    reason: str
    everything: bool = False


def fault_of(case: Case, result: Mapping[str, Any]) -> Fault | None:
    """The fault that PyTorch's result in float64 shows, by a law that it must obey."""
    name = case.target.name if isinstance(case.target, Layer) else case.target
    if name == "pad" and _has_wrong_shape(case, result):
        return Fault("the shape is not the sizes plus the paddings", everything=True)
    if name == "pad" and _wraps_what_is_cut(case):
        return Fault(
            "mode='circular' adds more than is left after cropping: the numbers are repeated from "
            "places that are not written yet, and Stretto refuses",
            everything=True,
        )
    if name == "MultiheadAttention" and _loses_a_key(case):
        return Fault(
            "beside is_causal and without weights, the key that add_bias_kv or add_zero_attn adds "
            "is never looked at; with need_weights=True it is",
            everything=True,
        )
    if name in RESIZING and not _is_adjoint(case, result):
        return Fault("resizing is linear, but the gradient is not its transpose")
    return None


def _has_wrong_shape(case: Case, result: Mapping[str, Any]) -> bool:
    (step,) = case.steps
    shape, ends = list(step.args[0].shape), step.kwargs["pad"]
    for axis in range(len(ends) // 2):
        shape[-1 - axis] += ends[2 * axis] + ends[2 * axis + 1]
    return result["steps"][0]["outputs"][0].shape != tuple(shape)


def _wraps_what_is_cut(case: Case) -> bool:
    (step,) = case.steps
    ends, shape = step.kwargs["pad"], step.args[0].shape
    pairs = zip(ends[::2], ends[1::2], reversed(shape))
    cut = [(low, high, size + min(low, 0) + min(high, 0)) for low, high, size in pairs]
    return step.kwargs["mode"] == "circular" and any(max(a, b) > left for a, b, left in cut)


def _loses_a_key(case: Case) -> bool:
    assert isinstance(case.target, Layer)
    call = case.steps[0].kwargs
    adds = case.target.kwargs.get("add_bias_kv") or case.target.kwargs.get("add_zero_attn")
    return bool(adds and call.get("is_causal") and not call["need_weights"])


def _is_adjoint(case: Case, result: Mapping[str, Any]) -> bool:
    """Whether ⟨w, A x⟩ = ⟨Aᵀ w, x⟩ for the output A x and the gradient Aᵀ w."""
    for step, values in zip(case.steps, result["steps"]):
        (output,), (gradient,) = values["outputs"], values["gradients"]
        terms = cotangent(output.shape, 0) * output
        if abs(terms.sum() - (gradient * step.args[0]).sum()) > 1e-9 * max(1, np.abs(terms).sum()):
            return False
    return True
