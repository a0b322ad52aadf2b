"""Two models with their published weights, end to end.

The weights are files of the packages ``wordllama`` and ``silero-vad``, of which no code is run:
they are safetensors, and the modules are written here.

- WordLlama embeds sentences: the similarities are those that its documentation prints.
- Silero's detector hears speech: the probabilities are PyTorch's, chunk by chunk. The package's
  ONNX files have other weights, so there is nothing else to compare with.

``python -m benchmarks.torch_models.published`` needs the environment of ``make torch-models``.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

import stretto as st

__all__ = ["main"]

BOUND = 1e-5
"""The largest error of a probability, which both sides compute in float32."""

DIGITS = 5e-5
"""The documentation has four digits of a similarity."""

QUERY = "Machine learning methods"

SIMILAR = {
    "Introduction to neural networks": 0.3414,
    "Foundations of neural science": 0.2115,
    "Introduction to philosophy: logic": 0.1067,
    "Cooking delicious pasta at home": 0.0045,
}
"""How similar to the query the first example in the documentation of WordLlama 0.4 finds these.

Its later examples print what other weights gave.
"""

CHUNK, CONTEXT, RATE = 512, 64, 16000
"""Samples that the detector hears at a time, those before them, and samples a second."""


class Embedder(nn.Module):
    """The mean of the vectors of a sentence's tokens, of length 1."""

    def __init__(self, tokens: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, size)

    def forward(self, tokens: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        total = (self.embedding(tokens) * present[..., None]).sum(1)
        return nn.functional.normalize(total / present.sum(1, keepdim=True), dim=1)


class Detector(nn.Module):
    """Speech or not: a spectrum, four convolutions, a recurrent cell."""

    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, sound: torch.Tensor, state: torch.Tensor) -> tuple[Any, Any]:
        padded = nn.functional.pad(sound[:, None], (0, 64), "reflect")
        real, imaginary = self.stft_conv(padded).chunk(2, 1)
        x = torch.sqrt(real**2 + imaginary**2)
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = torch.relu(layer(x))
        hidden, cell = self.lstm_cell(x[..., 0], (state[0], state[1]))
        speech = torch.sigmoid(self.final_conv(torch.relu(hidden)[..., None]))
        return speech[:, 0], torch.stack([hidden, cell])


def main() -> int:
    """Run the command; 0 if all results are those expected."""
    problems = [*_sentences(), *_speech()]
    print("\n".join([*problems, f"{len(problems)} problems"]))
    return 1 if problems else 0


def _file_of(package: str, path: str) -> Path:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed; make torch-models installs it")
    return Path(spec.submodule_search_locations[0]) / path


def _sentences() -> list[str]:
    weights = load_file(_file_of("wordllama", "weights/l2_supercat_256.safetensors"))
    theirs = Embedder(*weights["embedding.weight"].shape).eval()
    theirs.load_state_dict(weights)
    path = _file_of("wordllama", "tokenizers/l2_supercat_tokenizer_config.json")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch([QUERY, *SIMILAR], add_special_tokens=False)
    tokens = np.array([x.ids for x in encoded])
    present = np.array([x.attention_mask for x in encoded], np.float32)
    ours = st.from_torch(theirs, (torch.from_numpy(tokens), torch.from_numpy(present)))
    query, *vectors = np.asarray(st.jit(ours)(tokens, present))
    problems = []
    for (text, published), vector in zip(SIMILAR.items(), vectors, strict=True):
        found = float(query @ vector)
        print(f"wordllama: {found:.4f}, published {published:.4f}: {text}")
        if abs(found - published) > DIGITS:
            problems.append(f"wordllama: {found} and not {published}: {text}")
    return problems


def _speech() -> list[str]:
    theirs = Detector().eval()
    theirs.load_state_dict(load_file(_file_of("silero_vad", "data/silero_vad_16k.safetensors")))
    first = np.zeros((2, 1, 128), np.float32)
    ours = st.jit(st.from_torch(theirs, (torch.zeros(1, CONTEXT + CHUNK), torch.from_numpy(first))))
    sound = np.pad(_sound(), (CONTEXT, 0))
    found, expected = [], []
    here, there = first, torch.from_numpy(first)
    for start in range(0, len(sound) - CONTEXT, CHUNK):
        heard = sound[None, start : start + CONTEXT + CHUNK]
        speech, here = ours(heard, here)
        with torch.no_grad():
            wanted, there = theirs(torch.from_numpy(heard), there)
        found.append(float(speech[0, 0]))
        expected.append(float(wanted[0, 0]))
    errors = np.abs(np.subtract(found, expected))
    print(
        f"silero-vad: {len(found)} chunks, probabilities from {min(expected):.3f} to "
        f"{max(expected):.3f}, largest error {errors.max():.0e}"
    )
    if errors.max() <= BOUND:
        return []
    return [f"silero-vad: {errors.max()} off, in chunk {errors.argmax()}"]


def _sound() -> np.ndarray:
    """Three seconds: silence and noise, and between them vowels, pulses through resonances."""
    time = np.arange(3 * RATE // CHUNK * CHUNK) / RATE
    pitch = 120 + 20 * np.sin(2 * np.pi * 3 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = np.zeros_like(time)
    for harmonic in range(1, 30):
        frequency = harmonic * pitch
        loud = sum([np.exp(-(((frequency - f) / 120) ** 2)) for f in (650, 1100, 2500)])
        voice += loud * np.sin(harmonic * phase) / harmonic**0.5
    noise = np.random.default_rng(0).normal(size=time.size)
    spoken = (time % 1 > 0.3) * np.abs(np.sin(2 * np.pi * 2 * time))
    return (0.1 * voice * spoken + 0.002 * noise).astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
