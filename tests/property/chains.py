"""Chains of transformations of a program, each link checked against the function before it."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
from stretto._engine.core.program import check as check_program
from stretto._engine.core.types import is_inexact, kind_of
from stretto._engine.eager import interpreted
from stretto._engine.higher_order import cond, scan, while_loop
from stretto._engine.passes import prepare
from tests.property import (  # noqa: F401 (they fill the tables)
    control,
    customized,
    derivatives,
    elementwise,
    linear,
    repeated,
    structural,
)
from tests.property.oracles import Discard, Mismatch, NotFinite, arrays
from tests.property.programs import PREAMBLE, Block, Var, namespace
from tests.property.settings import ALL_ON, lines_of
from tests.property.transformations import TRANSFORMATIONS, Function, Inapplicable

__all__ = [
    "COMPILED_WHOLE",
    "ROLLED",
    "Failure",
    "Outcome",
    "Step",
    "draw_chain",
    "run_chain",
    "turned",
]


class Step(NamedTuple):
    """One transformation of a chain, with the seed of its choices."""

    name: str
    seed: int


COMPILED_WHOLE = Step("jit", 1)
"""The function as it is, in ``jit``."""


def draw_chain(seed: int, way: str, most: int = 4) -> list[Step]:
    """A random chain for programs differentiable in this way; what comes of it is compiled."""
    rng = random.Random(f"chain {seed}")
    able = [name for name, t in TRANSFORMATIONS.items() if way == "both" or set(t.takes) <= {way}]
    weights = [TRANSFORMATIONS[name].weight for name in able]
    chosen = rng.choices(able, weights, k=rng.randint(1, most))
    return [*(Step(name, rng.randrange(10**6)) for name in chosen), COMPILED_WHOLE]


class Knob(NamedTuple):
    """A threshold of the package, which arrays as small as here would never reach."""

    module: Any
    name: str
    value: Any
    said: str = ""
    """The value as it is written, where that is not how it prints."""

    def line(self) -> str:
        module = self.module.__name__.replace("stretto", "st", 1)
        return f"{module}.{self.name} = {self.said or self.value}"


ROUTED = (Knob(cond, "_WORTH", -1.0),)
"""Examples are sent to their branches, not each through all."""

COMPILED = (Knob(scan, "_INTERPRET_UP_TO", -1), Knob(while_loop, "_INTERPRET_UP_TO", -1))
"""Loops are compiled even where nothing else is."""


_ROLLED = (
    "tuple(p.__class__(**vars(p) | {'name': p.name.replace('roll_', 'roll_all_')}) "
    "for p in st._engine.passes.prepare.PREPARING)"
)
ROLLED = (
    Knob(
        prepare,
        "PREPARING",
        tuple(
            dataclasses.replace(p, name=p.name.replace("roll_", "roll_all_"))
            for p in prepare.PREPARING
        ),
        _ROLLED,
    ),
)
"""Whatever repeats is handed over as a loop, whether it pays or not."""

INTERPRETED = (Knob(interpreted, "MOST_EQUATIONS", 60),)
"""Larger programs are run in NumPy, too."""


def knobs_of(at: int) -> tuple[Knob, ...]:
    """The thresholds that the chains of this number are run with."""
    return (
        *(ROUTED if at % 3 == 0 else ()),
        *(COMPILED if at % 8 == 5 else ()),
        *(ROLLED if at % 5 in (0, 2) else ()),
        *(INTERPRETED if at % 7 == 3 else ()),
    )


@contextlib.contextmanager
def turned(knobs: Sequence[Knob]) -> Iterator[None]:
    """With these thresholds."""
    before = [getattr(knob.module, knob.name) for knob in knobs]
    for knob in knobs:
        setattr(knob.module, knob.name, knob.value)
    try:
        yield
    finally:
        for knob, value in zip(knobs, before, strict=True):
            setattr(knob.module, knob.name, value)


class Failure(Exception):
    """A link that is wrong: the settings, the functions, the call, and what was found."""

    def __init__(self, settings: str, source: str, call: str, error: Exception) -> None:
        self.settings, self.source, self.call, self.error = settings, source, call, error
        super().__init__(self.reproducer())

    @property
    def kind(self) -> str:
        return type(self.error).__name__

    def reproducer(self) -> str:
        """A program that runs by itself, and as a comment what was found."""
        found = f"{self.kind}: {self.error}".strip().replace("\n", "\n# ")
        settings = f"st.config.enable_x64 = True\n{self.settings}"
        parts = (PREAMBLE, settings, self.source, self.call)
        return "\n\n".join(parts) + f"\n# {found}\n"


class Outcome(NamedTuple):
    """How many links were checked, and why the chain was left, if it was."""

    links: int
    discarded: str


HALF = "FLOAT, COMPLEX = np.float32, np.complex64\n"
ALONE = "FLOAT, COMPLEX, INT = {}, np.complex64, np.int32\nst.config.enable_x64 = False\n"
NARROW = {
    # 32 bits, where 64 exist all the same
    2: HALF,
    10: HALF,
    6: ALONE.format("np.float32"),
    14: ALONE.format("np.float32"),
    4: ALONE.format("snp.bfloat16"),
    12: ALONE.format("np.float16"),
}
"""Types of fewer bits, by the remainder mod 16 of the numbers of the chains that end with them."""


class _Chain:
    """The functions so far, as source and as names."""

    def __init__(self, at: int, settings: Mapping[str, Any]) -> None:
        self.at = at
        self.settings = settings
        self.names = namespace("")
        self.narrow = ""
        self.sources: list[str] = []
        self.call = ""

    def define(self, source: str) -> None:
        self.sources.append(source)
        exec(compile(source, f"<g{len(self.sources) - 1}>", "exec"), self.names)

    def run(self, params: tuple[Var, ...], way: str) -> tuple[Function, list[np.ndarray]]:
        """Call the last function; it, and its arguments."""
        number = len(self.sources) - 1
        drawn = [v.drawn(1000 * self.at + 20 * number + i) for i, v in enumerate(params)]
        self.call = f"print(g{number}({', '.join(drawn)}))"
        args = arrays(eval(text, self.names) for text in drawn)
        raw = self.names[f"g{number}"]

        def fun(*args: Any) -> Sequence[Any]:
            return raw(*map(st.numpy.asarray, args))

        return Function(number, params, fun, arrays(fun(*args)), way), args

    def with_types(self, narrow: str) -> None:
        """From here on, all is defined for arguments of these types."""
        self.narrow = narrow
        sources, self.sources = self.sources, []
        exec(narrow.splitlines()[0], self.names)
        for source in sources:
            self.define(source)

    def failure(self, error: Exception) -> Failure:
        settings = lines_of(self.settings)
        settings += "".join(knob.line() + "\n" for knob in knobs_of(self.at))
        settings += self.narrow
        return Failure(settings, "\n\n".join(self.sources), self.call, error)


def run_chain(
    program: Block,
    way: str,
    steps: Sequence[Step],
    at: int = 0,
    settings: Mapping[str, Any] = ALL_ON,
) -> Outcome:
    """Check each link of a chain, with these settings; ``Failure`` at the first that is wrong.

    ``at`` numbers the arguments drawn, and decides on thresholds (``knobs_of``), and on whether the
    last function is run with fewer bits as well. 64-bit types must be enabled.
    """
    chain = _Chain(at, settings)
    try:
        with turned(knobs_of(at)), st.config(**settings):
            return _run_chain(chain, program, way, steps)
    except Exception as error:
        raise chain.failure(error) from error


def _run_chain(chain: _Chain, program: Block, way: str, steps: Sequence[Step]) -> Outcome:
    chain.define(program.source())
    function, args = chain.run(program.params, way)
    if not all(np.all(np.isfinite(y)) for y in function.outs):
        raise NotFinite("the program's own results are not finite")
    for step in steps:
        try:
            link = TRANSFORMATIONS[step.name].make(random.Random(step.seed), function)
        except Inapplicable:
            continue
        chain.define(link.source)
        function, args = chain.run(link.params, way)
        try:
            link.check(args, function.outs, np.random.default_rng(step.seed))
        except Discard as reason:
            return Outcome(function.number - 1, str(reason))
    _check_types(function, args)
    if chain.at % 16 in NARROW:
        chain.with_types(NARROW[chain.at % 16])
        with st.enable_x64("enable_x64" not in chain.narrow):
            return _run_narrow(chain, function, way)
    return Outcome(function.number, "")


def _run_narrow(chain: _Chain, function: Function, way: str) -> Outcome:
    """The last function with types of fewer bits: types as inferred, compiled as eagerly."""
    try:
        narrow, args = chain.run(function.params, way)
    except TypeError:
        if "float16" not in chain.narrow:
            raise
        return Outcome(function.number, "refuses 16 bits")  # linear algebra, and complex numbers
    _check_types(narrow, args)
    _check_narrow(narrow, args, function.outs, "float16" in chain.narrow)
    return Outcome(function.number, "")


def _check_types(function: Function, args: Sequence[np.ndarray]) -> None:
    """The types inferred while tracing are the real ones, and the program is well formed."""
    graph = st.make_graph(function.fun)(*args)
    check_program(graph)
    for y, t in zip(function.fun(*args), graph.out_types, strict=True):
        if (np.asarray(y).shape, np.asarray(y).dtype) != (t.shape, t.dtype) or y.type != t:
            raise Mismatch(f"inferred {t}, real {y.type}; weak types {t.weak_type, y.weak_type}")


def _check_narrow(
    narrow: Function, args: Sequence[np.ndarray], wide: Sequence[np.ndarray], quarter: bool
) -> None:
    """Compiled as eagerly, and finite as with 64 bits; in a quarter of these, numbers overflow."""
    jitted = arrays(st.jit(narrow.fun)(*args))
    for i, (g, e, w) in enumerate(zip(jitted, narrow.outs, wide, strict=True)):
        if (g.shape, g.dtype, e.shape) != (e.shape, e.dtype, w.shape):
            raise Mismatch(f"result {i}: {e.dtype}{e.shape}, compiled {g.dtype}{g.shape}")
        if kind_of(e.dtype) != kind_of(w.dtype):
            raise Mismatch(f"result {i}: {e.dtype}, with 64 bits {w.dtype}")
        if is_inexact(e.dtype) and not quarter and not np.all(np.isfinite(e)):
            raise Mismatch(f"result {i} is not finite\n{e}\nin 64 bits it is\n{w}")
