"""Random networks as ensembles, in every plan and with every option of XLA's that is set.

``make plan-storm ARGS="--minutes 60 --seed 0"``. Each network is an ensemble of 2 to 5 members,
with weights and batches that are shared or each member's own, at sizes for which libraries are
chosen. Its values and gradients, as one compiled program in float32, are held to those of one
member after the other in float64. The program is compiled as by default, and in variants: another
plan, YNNPACK for everything or nothing, a pass off, loops as one kernel or not, and the order of
least memory. Half of the time runs in a process that has vectors of 256 bits at most. Exit status
1 after any disagreement, each printed with its seed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.passes import rematerialize
from tests.property.networks import Network, draw_network

__all__ = ["VARIANTS", "Case", "disagreement", "draw_case", "main", "reference"]

_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
_PRODUCTS, _SUMS = "LIBRARY_FUSION_TYPE_DOT", "LIBRARY_FUSION_TYPE_REDUCE"

VARIANTS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "default": ({}, {}),
    **{
        f"plan {plan}": ({"plan": plan}, {})
        for plan in ("at once", "batched", "wide", "written out", "in turn")
    },
    "no library": ({}, {_LIBRARY: ""}),
    "sums by the library": ({}, {_LIBRARY: _SUMS}),
    "products by the library": ({}, {_LIBRARY: f"{_PRODUCTS},{_SUMS}"}),
    "batched, products by the library": ({"plan": "batched"}, {_LIBRARY: f"{_PRODUCTS},{_SUMS}"}),
    "without kernels": ({"kernels": False}, {}),
    "nothing simplified": ({"simplify": False}, {}),
    "no loops found": ({"roll_loops": False}, {}),
    "neither": ({"simplify": False, "roll_loops": False, "plan": "at once"}, {}),
    "compiled quickly": ({"tiers": True}, {}),
    "no loop as one kernel": ({}, {"xla_cpu_small_while_loop_byte_threshold": 0}),
    "large loops as one kernel": ({}, {"xla_cpu_small_while_loop_byte_threshold": 1 << 18}),
    "least memory": ({}, {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}),
    "computed again": ({}, {}),
    "computed again, least memory": (
        {}, {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
    ),
}  # fmt: skip
"""For each variant, settings and options of the compiler."""

_VALUES = 2e-4
"""How far values may be apart, as a share of the largest.

Networks keep their values near 1; layers add up a few hundred terms, rounded to 6e-8 each, and
norms multiply what is lost before them by up to 10.
"""

_SLOPES = 2e-3
"""The same of gradients, which pass all layers twice; of all elements together (L2), since where a
kink, a maximum or an order of equal numbers is decided differently, single elements differ."""


class Case(NamedTuple):
    """A network as an ensemble."""

    network: Network
    members: int
    weights: list[np.ndarray]
    own: list[bool]
    """Which weights are each member's own, along axis 0; at least one is, or the batch."""
    x: np.ndarray
    own_x: bool
    target: np.ndarray
    """What the outputs are multiplied by to be differentiated."""
    updates: bool
    """Whether a moment and new weights are given in place of the gradient by the weights."""

    @property
    def words(self) -> str:
        """The case in a line."""
        shared = [i for i, own in enumerate(self.own) if not own]
        return (
            f"{self.members} members, {'own' if self.own_x else 'one'} batch, weights {shared} "
            f"shared{', updated' if self.updates else ''}; {self.network.words}"
        )

    def slopes(self, weights: Sequence[Any], x: Any) -> tuple[Any, Any]:
        """One member's outputs, and the gradient by its weights, or updates, and its batch."""
        target = self.target.astype(x.dtype)

        def loss(weights: Sequence[Any], x: Any) -> Any:
            y = self.network(weights, x)
            return snp.sum(y * target), y

        gradient, y = st.grad(loss, argnums=(0, 1), has_aux=True)(weights, x)
        if not self.updates:
            return y, gradient
        # As large as the gradient, so that its errors show.
        moments = [1e-3 * w + g for w, g in zip(weights, gradient[0], strict=True)]
        changed = [1e-3 * w - 0.5 * m for w, m in zip(weights, moments, strict=True)]
        return y, (moments, changed, gradient[1])


def draw_case(seed: int, layers: int = 6, most: int = 200_000) -> Case:
    """Draw a network, how many members it has, and what they share."""
    rng, values = random.Random(f"case {seed}"), np.random.default_rng(seed)
    network = draw_network(seed, layers, most)
    members = rng.randint(2, 5)
    mixed = rng.random() < 0.3
    own_x = rng.random() < 0.3
    own = [not mixed or rng.random() < 0.6 for _ in network.shapes()]
    if not any(own):
        own_x = True
    weights = [
        values.standard_normal((members, *shape) if mine else shape)
        for shape, mine in zip(network.shapes(), own, strict=True)
    ]
    x = values.standard_normal((members, *network.shape) if own_x else network.shape)
    out = st.eval_shape(
        network, [np.zeros(shape, np.float32) for shape in network.shapes()],
        np.zeros(network.shape, np.float32),
    )  # fmt: skip
    target = values.standard_normal(out.shape) / np.sqrt(max(1, np.prod(out.shape)))
    # Rounded once, so that both precisions start from the same numbers.
    single = [w.astype(np.float32) for w in weights]
    x, target = x.astype(np.float32), target.astype(np.float32)
    return Case(network, members, single, own, x, own_x, target, seed % 2 == 1)


def reference(case: Case) -> list[np.ndarray]:
    """One member after the other in float64, which no library of XLA's takes."""
    rows = []
    with st.enable_x64(), st.config(simplify=False, roll_loops=False):
        one = st.jit(case.slopes)
        for i in range(case.members):
            weights = [
                (w[i] if mine else w).astype(np.float64)
                for w, mine in zip(case.weights, case.own, strict=True)
            ]
            x = (case.x[i] if case.own_x else case.x).astype(np.float64)
            rows.append([np.asarray(leaf) for leaf in st.tree.leaves(one(weights, x))])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def together(case: Case, variant: str) -> list[np.ndarray]:
    """All members as one program in float32."""
    settings, options = VARIANTS[variant]
    axes = [0 if mine else None for mine in case.own], 0 if case.own_x else None
    small = _as_if_large() if variant.startswith("computed again") else contextlib.nullcontext()
    with small, st.config(disk_cache=False, interpret_small=False, **settings):
        program = st.jit(st.vmap(case.slopes, in_axes=axes), compiler_options={**options} or None)
        return [np.asarray(leaf) for leaf in st.tree.leaves(program(case.weights, case.x))]


def _as_if_large() -> Any:
    """Have what is cheap computed again, as in programs of much memory."""
    always = {"_MUCH": 1, "_LEAST": 1, "_AFTER": 0, "_WORTH": 10.0}
    return mock.patch.multiple(rematerialize, **always)


def disagreement(case: Case, got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> str:
    """Say in words where they differ by more than rounding; empty if nowhere."""
    slopes = [np.linalg.norm(b.ravel()) for b in want[1:] if np.isfinite(b).all()]
    # What is 0 but for rounding, as the gradient of a bias before a norm, is held to the others.
    longest = max(slopes, default=0.0)
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        what = "values" if number == 0 else f"gradient {number - 1}"
        if a.shape != b.shape:
            return f"{what}: shape {a.shape}, expected {b.shape}"
        if not np.isfinite(b).all():
            continue
        size = np.abs(b).max(initial=0)
        if number == 0:
            apart = np.abs(a - b).max(initial=0)
            if not apart <= _VALUES * size + 1e-6:
                return f"{what}: apart by {apart:.3g} of {size:.3g}"
            continue
        distance = np.linalg.norm((a - b).ravel())
        length = np.linalg.norm(b.ravel())
        bound = _SLOPES if case.network.smooth else 25 * _SLOPES
        if not distance <= bound * (length + 0.01 * longest) + 1e-5:
            return f"{what}: apart by {distance:.3g} of {length:.3g} (L2)"
    return ""


def storm(seed: int, minutes: float, cases: int | None, variants: int, where: str) -> int:
    """Run; print each disagreement and a summary; return how many there were."""
    start = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    others = [name for name in VARIANTS if name != "default"]
    while time.monotonic() - start < 60 * minutes and counts["networks"] != cases:
        at = seed + counts["networks"]
        counts["networks"] += 1
        case = draw_case(at)
        chosen = ["default", *random.Random(f"variants {at}").sample(others, variants)]
        want = reference(case)
        for variant in chosen:
            counts["programs"] += 1
            wrong = disagreement(case, together(case, variant), want)
            if wrong:
                counts["disagreements"] += 1
                print(f"{where}: {at}, {variant}: {wrong}\n    {case.words}", flush=True)
        if not counts["networks"] % 20:
            st.clear_caches()
    print(
        f"{where}: {counts['networks']} networks, {counts['programs']} programs, "
        f"{counts['disagreements']} disagreements, {time.monotonic() - start:.0f} s",
        flush=True,
    )
    return counts["disagreements"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with the machine's vectors and with those of 256 bits, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="plan_storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--networks", type=int, default=None, help="end after so many")
    parser.add_argument("--variants", type=int, default=3, help="beside the default, of each")
    parser.add_argument("--isa", default="", help="run here, with these vectors alone")
    given = parser.parse_args(arguments)
    if given.isa:
        return bool(storm(given.seed, given.minutes, given.networks, given.variants, given.isa))
    failed = 0
    for isa, flags in (("machine", ""), ("AVX2", "--xla_cpu_max_isa=AVX2")):
        environment = {
            **os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.property.plan_storm", "--isa", isa]
        command += ["--seed", str(given.seed), "--variants", str(given.variants)]
        command += ["--minutes", str(given.minutes / 2)]
        if given.networks is not None:
            command += ["--networks", str(given.networks)]
        failed += subprocess.run(command, env=environment, check=False).returncode
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
