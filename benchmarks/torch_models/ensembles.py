"""Ensembles of five: each of ten models with five sets of weights, as one program.

What the members give, and the gradients of all of them, are compared with PyTorch's loop in
float64, and the time that the compiler takes for the one program with what it takes for that of a
single model. Run it: ``python -m benchmarks.torch_models.ensembles``.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

import stretto as st
from benchmarks.torch_models import reference
from benchmarks.torch_models.catalogue import MODELS
from benchmarks.torch_models.comparing import distance, numbered
from benchmarks.torch_models.model import Call, Model
from benchmarks.torch_models.ours import arrays_of, leaves_of
from benchmarks.torch_models.reference import in_double

__all__ = ["Figures", "look_at", "main"]

MEMBERS = 5

NAMES = (
    "torchvision/resnet18",
    "torchvision/mobilenet_v3_small",
    "torchvision/convnext",
    "torchvision/vit",
    "transformers/bert",
    "transformers/gpt2",
    "transformers/t5",
    "diffusers/unet",
    "timm/seresnet18",
    "written/lstm",
)
"""By the beginnings of their names, one of each kind of network."""

BOUND = 1e-9
"""The largest error of an output or a gradient, as in ``comparing``."""

SLOWEST = 3.0
"""How many times as long as a single model the compiler may take for five."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """What was found of a model.

    Args:
        name: its name.
        groups: how many programs its members have.
        outputs: the largest relative error of the members' outputs.
        gradients: that of their gradients.
        seconds: the compiler's time for outputs and gradients: of one model, and of five.
    """

    name: str
    groups: int
    outputs: float
    gradients: float
    seconds: tuple[float, float]

    @property
    def ratio(self) -> float:
        """How many times as long as a single model five take to compile."""
        return self.seconds[1] / self.seconds[0]

    def problems(self) -> list[str]:
        """What is beyond its bound."""
        errors = {"outputs": self.outputs, "gradients": self.gradients}
        beyond = [
            f"{self.name}: {name} {error:.1e} off; the bound is {BOUND:.0e}"
            for name, error in errors.items()
            if error > BOUND
        ]
        if self.ratio > SLOWEST:
            beyond.append(
                f"{self.name}: five take {self.ratio:.1f} times as long to compile as one; the "
                f"bound is {SLOWEST:g}"
            )
        return beyond if self.groups == 1 else [*beyond, f"{self.name}: {self.groups} programs"]


def look_at(model: Model) -> Figures:
    """Make five of a model, and compare."""
    others = [model.made(seed).module for seed in range(1, MEMBERS)]
    with in_double(model.made()) as call:
        calls = [call, *[dataclasses.replace(call, module=other.double()) for other in others]]
        outputs = _by_member([numbered(reference.outputs(each)) for each in calls])
        gradients = _by_member([_gradients(each) for each in calls])
        modules = [each.module.eval() for each in calls]
        ensemble = st.Ensemble.from_torch(modules, call.args, dict(call.kwargs))
    args, kwargs = arrays_of(call)

    def results(f: Any) -> list[Any]:
        return leaves_of(f(*args, **kwargs))

    def loss(f: Any) -> Any:
        return sum([(x * x).sum() for x in results(f) if x.dtype.kind == "f"])

    seconds = []
    for f in (ensemble[0], ensemble):
        start = time.perf_counter()
        compiled = [st.jit(program).lower(f).compile() for program in (results, st.grad(loss))]
        seconds.append(time.perf_counter() - start)
    of_all, slopes = [program(ensemble) for program in compiled]
    members = [st.take(of_all, k) for k in range(MEMBERS)]
    found = _by_member([numbered([np.asarray(x) for x in member]) for member in members])
    ours = _by_member(
        [{n: np.asarray(x) for n, x in member.state_dict().items()} for member in slopes]
    )
    ours = {name: x for name, x in ours.items() if name in gradients}
    return Figures(
        model.name,
        len(ensemble.groups),
        distance(found, outputs)[0],
        distance(ours, gradients)[0],
        (seconds[0], seconds[1]),
    )


def _by_member(members: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {f"{name} of {k}": x for k, member in enumerate(members) for name, x in member.items()}


def _gradients(call: Call) -> dict[str, np.ndarray]:
    """PyTorch's, of the sum of squares of all outputs in evaluation mode."""
    call.module.eval().zero_grad()
    leaves = tree_leaves(call.module(*call.args, **call.kwargs))
    floats = [x for x in leaves if isinstance(x, torch.Tensor) and x.is_floating_point()]
    loss: Any = sum([(x * x).sum() for x in floats])
    loss.backward()
    named = call.module.named_parameters()
    return {name: x.grad.numpy().copy() for name, x in named if x.grad is not None}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if everything is within its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_models.ensembles")
    parser.add_argument("--only", metavar="NAME,…", help="models whose names begin so")
    options = parser.parse_args(arguments)
    wanted = tuple(options.only.split(",")) if options.only else NAMES
    warnings.filterwarnings("ignore")
    st.config.enable_x64 = True
    st.config.disk_cache = False  # the compiler's time counts
    problems = []
    for model in [model for model in MODELS if model.name.startswith(wanted)]:
        figures = look_at(model)
        print(
            f"{figures.name:32} outputs {figures.outputs:.0e}, gradients {figures.gradients:.0e}, "
            f"compiled in {figures.seconds[0]:.1f} s, five in {figures.seconds[1]:.1f} s "
            f"({figures.ratio:.2f})",
            flush=True,
        )
        problems += figures.problems()
    print("\n".join([*problems, f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
