"""How near the planner's choices for mapped products and convolutions are to the measured best.

Cases are drawn at random: products and convolutions as networks have them, forward and as in their
gradients, and odd ones, of 2 to 100 members with operands of their own or shared. Of each, all
formulations that the planner can take are compiled and timed in turns, and the one that it takes is
compared with the fastest. Of 100 cases 95 are to be within 1.3 of it.

On a busy machine repeat it with `--keep FILE --again`, so that the least times count; with `--keep`
alone nothing is measured twice, and another planner is judged by the same times in seconds.
`XLA_FLAGS=--xla_cpu_max_isa=AVX2` asks the same of narrower vectors.

    python -m benchmarks.planner --cases 30 --from 60 --keep build/planner.json
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import record_closed
from stretto._engine.core import cost
from stretto._engine.core.config import config, settings
from stretto._engine.core.program import Program
from stretto._engine.core.types import ArrayType
from stretto._engine.kernels import LEVEL, WITHOUT
from stretto._engine.passes.formulations.forms import Form, Plan
from stretto._engine.passes.formulations.mapped import Mapped
from stretto._engine.passes.formulations.members import Decision, plan_in_turn, plan_members
from stretto._engine.xla.array import Array
from stretto._engine.xla.cache import executable

GOAL = 1.3
"""How many times the best formulation's time the chosen one's may be."""

SHARE = 0.95
"""The share of cases in which it is to be."""

_WORK = (1 << 16, 1 << 30)
_BYTES = 1 << 26
"""Multiply-adds of all members, and the most bytes of operands and results, so that a case takes
some seconds."""

_ROUND = 2e-3
"""Seconds of calls one after the other, at least."""


class Case(NamedTuple):
    """A mapped operation: the function of one member, and its arguments' shapes and axes."""

    name: str
    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    own: tuple[bool, bool]
    size: int
    work: float
    """Multiply-adds of all members."""
    dtype: str

    def call(self) -> Mapped:
        """Trace the mapped call."""
        types = [
            st.ShapeDtypeStruct((self.size, *shape) if own else shape, self.dtype)
            for shape, own in zip(self.shapes, self.own, strict=True)
        ]
        mapped = st.vmap(self.function, [0 if own else None for own in self.own])
        calls = [e.primitive for e in st.make_graph(mapped)(*types).equations]
        (call,) = [call for call in calls if isinstance(call, Mapped)]
        return call


# Drawing cases


def drawn(seed: int, number: int) -> Case:
    """Draw the case of this number: the same each time, whichever others are drawn."""
    random = np.random.default_rng([seed, number])
    while True:
        case = _product(random) if random.random() < 0.5 else _convolution(random)
        arrays = [
            (case.size if own else 1) * math.prod(shape)
            for shape, own in zip(case.shapes, case.own, strict=True)
        ]
        if _WORK[0] <= case.work <= _WORK[1] and 4 * sum(arrays) <= _BYTES:
            return case


def _size(random: np.random.Generator, least: int, most: int) -> int:
    """Draw a number, small ones as often as large ones, and half of the time a power of two."""
    power = random.uniform(math.log2(least), math.log2(most + 1))
    if random.random() < 0.5:
        return 2 ** math.floor(max(power, math.ceil(math.log2(least))))
    return min(most, math.floor(2**power))


def _shared(random: np.random.Generator) -> tuple[bool, bool]:
    return ((True, True), (True, False), (False, True))[random.integers(3)]


def _dtype(random: np.random.Generator) -> str:
    return "float64" if random.random() < 0.1 else "float32"


_PRODUCTS = {
    "x @ w": "mk,kn->mn",
    "x @ w.T": "mk,nk->mn",
    "x.T @ g": "km,kn->mn",
    "row @ w": "k,kn->n",
    "w @ column": "nk,k->n",
    "heads": "bmk,bkn->bmn",
    "heads, transposed": "bmk,bnk->bmn",
    "batch @ w": "bmk,kn->bmn",
}


def _product(random: np.random.Generator) -> Case:
    kind = list(_PRODUCTS)[random.integers(len(_PRODUCTS))]
    letters = _PRODUCTS[kind]
    sizes = {
        "m": _size(random, 1, 1024),
        "k": _size(random, 1, 4096),
        "n": _size(random, 1, 2048),
        "b": _size(random, 2, 16),
    }
    members, own, dtype = _size(random, 2, 100), _shared(random), _dtype(random)
    x, y = letters.partition("->")[0].split(",")
    shapes = [tuple(sizes[a] for a in operand) for operand in (x, y)]
    work = members * math.prod(sizes[a] for a in set(x + y))
    name = f"{kind} {_shown(shapes, own, members)} {dtype}"
    return Case(name, lambda x, y: snp.einsum(letters, x, y), shapes, own, members, work, dtype)


def _convolution(random: np.random.Generator) -> Case:
    axes = 1 if random.random() < 0.15 else 2
    window = int(random.choice([1, 3, 3, 3, 5, 7]))
    step = 2 if random.random() < 0.2 else 1
    side = _size(random, max(2, window), 64 if axes == 2 else 512)
    batch, features, outputs = _size(random, 1, 32), _size(random, 1, 256), _size(random, 1, 256)
    if random.random() < 0.25:
        features = int(random.choice([1, 3]))
    groups = 1
    if random.random() < 0.15:  # depthwise
        groups = outputs = features
    last = random.random() < 0.5
    spatial = "HW"[:axes]
    dims = (
        (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
        if last
        else (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
    )
    sizes = {"N": batch, "C": features, "I": features // groups, "O": outputs}
    image = tuple(sizes.get(a, side) for a in dims[0])
    kernel = tuple(sizes.get(a, window) for a in dims[1])

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (step,) * axes, "SAME", dimension_numbers=dims, feature_group_count=groups
        )

    positions = -(-side // step)
    result = tuple({"N": batch, "C": outputs}.get(a, positions) for a in dims[2])
    members, own, dtype = _size(random, 2, 100), _shared(random), _dtype(random)
    way = ("forward", "by the image", "by the kernel")[random.integers(3)]
    zeros = lambda shape: snp.zeros(shape, dtype)

    def by_image(w: Any, g: Any) -> Any:
        return st.vjp(lambda x: forward(x, w), zeros(image))[1](g)[0]

    def by_kernel(x: Any, g: Any) -> Any:
        return st.vjp(lambda w: forward(x, w), zeros(kernel))[1](g)[0]

    function, shapes = {
        "forward": (forward, (image, kernel)),
        "by the image": (by_image, (kernel, result)),
        "by the kernel": (by_kernel, (image, result)),
    }[way]
    work = members * batch * positions**axes * window**axes * features * outputs // groups
    name = (
        f"convolution {way}, {window} wide, step {step}, {groups} groups, {dims[0]} "
        f"{_shown(shapes, own, members)} {dtype}"
    )
    return Case(name, function, shapes, own, members, work, dtype)


def _shown(shapes: Sequence[tuple[int, ...]], own: Sequence[bool], size: int) -> str:
    shown = [
        f"{f'{size}*' if o else ''}[{','.join(map(str, s))}]"
        for s, o in zip(shapes, own, strict=True)
    ]
    return " ".join(shown)


# Measuring


class _Exactly(NamedTuple):
    """A plan that asks for one form."""

    form: Form

    def asks_for(self, form: Form) -> bool:
        """Say whether it is this one."""
        return form is self.form


def exactly(name: str) -> Any:
    """Return a plan for the form of this name."""
    return _Exactly(Form(name))


def formulations(call: Mapped) -> tuple[dict[str, Program], str, Sequence[Decision]]:
    """Return each program that the planner can take, the one that it does take, and why."""
    member, size, over = call.member, call.size, call.over
    taken, decisions = plan_members(member, size, over, Plan.AUTO)
    _, found = plan_members(member, size, over, Plan.AT_ONCE)
    texts = {str(taken): "taken"}
    programs = {"taken": taken}
    candidates: dict[str, Callable[[], Program]] = {
        name: lambda name=name: plan_members(member, size, over, exactly(name))[0]
        for decision in found
        for name, _ in decision.choices
    }
    for count in _counts(size):
        candidates[f"{count} a turn"] = lambda count=count: plan_in_turn(
            member, size, count, over, cost.current()
        )[0]
    for name, make in candidates.items():
        program = make()
        if str(program) not in texts:
            texts[str(program)] = name
            programs[name] = program
        elif texts[str(program)] == "taken":
            texts[str(program)] = name
            programs[name] = programs.pop("taken")
    return programs, texts[str(taken)], decisions


def _counts(size: int) -> list[int]:
    """Return how many members a turn may have: one, and what is nearest to eight."""
    divisors = [n for n in range(1, size) if size % n == 0]
    return sorted({1, min(divisors, key=lambda n: abs(math.log(n / 8)))})


def compiled(call: Mapped, program: Program) -> Callable[[Sequence[Any]], Any]:
    """Compile the mapped call with this as its plan, as ``jit`` would."""
    member = call.member
    member = Program(member.inputs, member.equations, member.outputs, member.name)
    call = Mapped(member, call.size, call.over, call.form)
    member.cache["planned", call.size, call.over, call.form, settings.key] = program, []
    return executable(record_closed(lambda *xs: (call(*xs), None), program.in_types, "mapped")[0])


def times_of(
    runs: Mapping[str, Callable[[Sequence[Any]], Any]], types: Sequence[ArrayType], seconds: float
) -> dict[str, float]:
    """Return the microseconds of each: the least of rounds in which they take turns.

    A round of one is some calls, as many as take a few milliseconds; in all each gets so many
    ``seconds``, but at least two rounds.
    """
    random = np.random.default_rng(0)
    numbers = [0.1 * random.standard_normal(t.shape).astype(t.dtype) for t in types]
    buffers = [Array(x, t).to_buffer() for x, t in zip(numbers, types, strict=True)]

    def one(run: Callable[[Sequence[Any]], Any], count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            for out in run(buffers):
                out.block_until_ready()
        return (time.perf_counter() - start) / count

    counts = {}
    for name, run in runs.items():
        one(run, 1)
        counts[name] = max(1, round(_ROUND / one(run, 1)))
    least = dict.fromkeys(runs, math.inf)
    begun, rounds = time.perf_counter(), 0
    while rounds < 2 or time.perf_counter() - begun < seconds * len(runs):
        for name, run in runs.items():
            least[name] = min(least[name], one(run, counts[name]))
        rounds += 1
    return {name: 1e6 * s for name, s in least.items()}


def judged(
    case: Case, known: Mapping[str, float], seconds: float, again: bool = False
) -> dict[str, Any]:
    """Return what is chosen of a case, the times of all formulations, and the estimates.

    Where the times of all are ``known``, nothing is measured, unless they are to be ``again``: then
    the lesser ones count.
    """
    call = case.call()
    programs, taken, decisions = formulations(call)
    times = dict(known)
    if again or not known.keys() >= programs.keys():
        runs = {name: compiled(call, program) for name, program in programs.items()}
        types = next(iter(programs.values())).in_types
        for name, microseconds in times_of(runs, types, seconds).items():
            times[name] = min(microseconds, known.get(name, math.inf))
    return {
        "case": case.name,
        "work": case.work,
        "taken": taken,
        "times": {name: times[name] for name in sorted(times, key=times.__getitem__)},
        "ratio": times[taken] / min(times.values()),
        "estimates": [dict(d.choices) for d in decisions],
    }


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 1 where fewer cases than are to be are near the best."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planner", description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="how many cases")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one's number")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each formulation")
    parser.add_argument("--stop", type=float, default=math.inf, help="after so many seconds")
    parser.add_argument("--worst", type=int, default=15, help="how many of the worst to show")
    parser.add_argument("--keep", type=Path, help="a file of times, read and written")
    parser.add_argument("--again", action="store_true", help="measure what is kept once more")
    options = parser.parse_args(arguments)
    kept = {}
    if options.keep is not None and options.keep.exists():
        kept = json.loads(options.keep.read_text())
    begun, found = time.perf_counter(), []
    with config(disk_cache=False, enable_x64=True):
        for number in range(options.first, options.first + options.cases):
            if time.perf_counter() - begun > options.stop:
                break
            case = drawn(options.seed, number)
            found.append(judged(case, kept.get(case.name, {}), options.seconds, options.again))
            kept[case.name] = found[-1]["times"]
    if options.keep is not None:
        options.keep.write_text(json.dumps(kept, indent=1) + "\n")
    near = [entry for entry in found if entry["ratio"] <= GOAL]
    print(
        f"{len(near)} of {len(found)} choices within {GOAL} of the best, by the costs of "
        f"{cost.current().name}; kernels: {LEVEL or WITHOUT}"
    )
    for entry in sorted(found, key=lambda entry: -entry["ratio"])[: options.worst]:
        print(f"{entry['ratio']:6.2f}  {entry['case']}")
        estimates = {name: t for chosen in entry["estimates"] for name, t in chosen.items()}
        for name, microseconds in entry["times"].items():
            mark = "->" if name == entry["taken"] else "  "
            guess = estimates.get(name)
            told = "" if guess is None else f"{guess:12,.0f} estimated"
            print(f"     {mark} {microseconds:12,.0f} us {told:24} {name}")
    return int(len(near) < SHARE * len(found))


if __name__ == "__main__":
    sys.exit(main())
