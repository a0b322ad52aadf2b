"""A fuzzer of the extension in C: hostile calls at random, and no crash, hang or wrong value.

    python -m tests.native.fuzz [--seconds 60] [--seed N]

Wrong types, errors and signals raised in the midst, hostile nodes of trees, calls within calls,
threads against ``clear_caches``. It is most telling under ``make sanitize``.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import importlib
import pkgutil
import random
import signal
import sys
import threading
import time
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import state
from stretto._engine.eager.interpreter import EAGER, quiet
from stretto._engine.eager.table import forget
from stretto._engine.native import native
from stretto._engine.xla.array import Array

Pair = namedtuple("Pair", "first second")

FIELDS = (
    "interpret",
    "run",
    "handlers",
    "leaves",
    "constants",
    "out_types",
    "unflatten",
    "tidy",
    "alive",
)
"""Those of a record."""

WORLD = ("array", "placed", "absent", "state", "eager", "quiet", "ndarray", "asarray")
"""What eager calls go by."""


class Planted(Exception):
    """Raised on purpose."""


class Wrong(BaseException):
    """What must not be."""


class Box:
    """A registered class, with static data that may not be hashable."""

    def __init__(self, value: Any, label: Any) -> None:
        self.value, self.label = value, label


st.tree.register_pytree_node(
    Box, lambda box: ((box.value,), box.label), lambda label, children: Box(*children, label)
)


class Strange(dict):
    """A dictionary that is none of Python's own."""


class Name(str):
    """A string that is none of Python's own."""


def clear_everything() -> None:
    """Empty all tables that the extension reads."""
    st.clear_caches()
    forget()


class Cycle:
    """Garbage whose finalizer does something, whenever the collector comes by."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.me = self
        self.act = act

    def __del__(self) -> None:
        self.act()


class Fuzzer:
    """One thread's choices."""

    def __init__(self, seed: int, main: bool) -> None:
        self.rng = random.Random(seed)
        self.main = main
        self.done = dict.fromkeys([f.__name__ for f in self.actions()], 0)
        self.jitted = [
            st.jit(lambda tree: st.tree.map(lambda x: x + 1, tree)),
            st.jit(lambda tree: sum((x.sum() for x in st.tree.leaves(tree)), snp.zeros(()))),
            st.jit(lambda tree: [x @ x.T for x in st.tree.leaves(tree) if x.ndim == 2]),
        ]

    def actions(self) -> list[Callable[[], None]]:
        """What there is to do."""
        return [
            self.operate, self.call, self.call_hostile, self.wait, self.misuse, self.plant_garbage,
            self.clear, self.donate, self.evaluate, self.nest, self.tamper,
        ]  # fmt: skip

    def step(self) -> None:
        """Do one thing."""
        action = self.rng.choice(self.actions())
        self.done[action.__name__] += 1
        action()

    def array(self) -> Array:
        """Some array."""
        shape = self.rng.choice([(), (1,), (3,), (2, 3), (40, 40), (0,), (2, 0)])
        dtype = self.rng.choice([np.float32, np.int32, np.uint8, bool, snp.bfloat16, np.complex64])
        host = np.ones(shape, np.float32).astype(dtype)
        made = snp.asarray(host)
        return made if self.rng.random() < 0.7 else snp.array(np.asarray(made))

    def tree(self, depth: int = 3) -> Any:
        """A tree that the short way knows."""
        r = self.rng
        if depth == 0 or r.random() < 0.3:
            return self.array()
        n = r.randrange(4)
        kind = r.randrange(8)
        if kind == 4:
            return Pair(self.tree(depth - 1), self.tree(depth - 1))
        if kind == 5:
            return Box(self.tree(depth - 1), r.choice([None, 1, "x", (1, 2), [3]]))
        if kind == 6:
            return r.choice([np.ones(3, np.float32), np.ones((2, 3)), np.float32(1), 1.5, True, 7])
        if kind == 0:
            return [self.tree(depth - 1) for _ in range(n)]
        if kind == 1:
            return tuple(self.tree(depth - 1) for _ in range(n))
        if kind == 2:
            names = ["".join(["key", str(r.randrange(6))]) for _ in range(n)]
            return {name: self.tree(depth - 1) for name in names}
        return None

    def hostile(self, depth: int = 2) -> Any:
        """A tree with something in it that the short way does not know, or must not take."""
        r = self.rng
        deep: Any = self.array()
        for _ in range(r.randrange(60, 90)):
            deep = [deep]
        ring: list[Any] = []
        ring.append(ring)
        chosen = r.choice(
            [
                lambda: Strange(a=self.array()),
                lambda: {Name("a"): self.array()},
                lambda: {1: self.array(), 2: self.array()},
                lambda: {"a": self.array(), 1: self.array()},
                lambda: OrderedDict(b=self.array(), a=self.array()),
                lambda: defaultdict(list, a=self.array()),
                lambda: Pair(self.array(), self.array()),
                lambda: deep,
                lambda: ring,
                lambda: "text",
                object,
                lambda: 1 << 400,
                lambda: np.ones(3),
                lambda: np.float32(1),
                lambda: 1.5,
                lambda: True,
                lambda: {"\ud800": self.array()},
                lambda: native.Holder(None, None) if native else None,
                lambda: Array.__new__(Array, None, snp.ones(2).type),
                lambda: [self.array()] * 300,
            ]
        )()
        return chosen if depth == 0 or r.random() < 0.5 else [self.array(), chosen, self.tree(1)]

    def operate(self) -> None:
        """Operators between anything."""
        r = self.rng
        x = self.array()
        y = r.choice(
            [self.array(), x, 2, -1, 2.5, 300, 1 << 70, -(1 << 70), True, None, "x", [1], 1j,
             np.ones(3, np.float32), np.float64(2)]
        )  # fmt: skip
        names = ["add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "and", "or", "xor",
                 "eq", "ne", "lt", "le", "gt", "ge", "pow", "radd", "rsub", "rmatmul"]  # fmt: skip
        name = f"__{r.choice(names)}__"
        for _ in range(r.randrange(1, 4)):
            getattr(x, name)(y)

    def call(self) -> None:
        """A jitted function on a plain tree, and what it must give."""
        tree = self.tree()
        out = self.jitted[0](tree)
        want = st.tree.leaves(tree)
        got = st.tree.leaves(out)
        if len(got) != len(want):
            raise Wrong(f"{len(got)} results, not {len(want)}")
        for g, w in zip(got, want, strict=True):
            if not np.array_equal(np.asarray(g), np.asarray(w + 1)):
                raise Wrong(f"{w} + 1 gave {g}")

    def call_hostile(self) -> None:
        """A jitted function on what it may refuse."""
        f = self.rng.choice(self.jitted)
        if self.rng.random() < 0.5:
            f(self.hostile())
        else:
            f(tree=self.hostile())

    def wait(self) -> None:
        """Waiting for anything, and for results."""
        tree = self.rng.choice([self.hostile, self.tree])()
        if st.block_until_ready(tree) is not tree:
            raise Wrong("waiting gave another tree")
        st.block_until_ready(self.jitted[0](self.tree()))

    def misuse(self) -> None:
        """The types of the extension, used wrongly."""
        if native is None:
            return
        r = self.rng
        anything = [None, 1, "x", {}, (), b"ab", [], Array, object(), self.array(), {1: 2}]

        def some(n: int) -> list[Any]:
            return [r.choice(anything) for _ in range(n)]

        dispatcher = native.Dispatcher()
        r.choice(
            [
                lambda: native.Holder(*some(r.randrange(5))),
                lambda: native.attach_eager(**dict(zip(WORLD, some(8), strict=True))),
                lambda: native.attach_jit(settings=1, apart={}, leaf_of=1, as_array=1),
                lambda: native.unfinished(r.choice(anything)),
                lambda: native.EagerRecord(*some(r.randrange(6))),
                lambda: native.EagerCall(*some(r.randrange(5))),
                lambda: native.EagerCall(len, {}, *some(2))(*some(r.randrange(5))),
                lambda: native.EagerCall(len, {1: {}}, True)(None, 1, (self.array(),)),
                lambda: native.EagerCall(len, {1: native.EagerRecord(*some(2))}, True)(0, 1, ()),
                lambda: native.Quiet(*some(2)),
                quiet.run,
                lambda: quiet.run(*some(r.randrange(1, 4))),
                lambda: dispatcher._attach(*some(2)),
                lambda: dispatcher._attach((), ()) or dispatcher(*some(r.randrange(3))),
                lambda: dispatcher(*some(r.randrange(3))),
                lambda: dispatcher._remember(*some(2)),
                lambda: native.CallRecord(**dict(zip(FIELDS, some(9), strict=True))),
                lambda: dispatcher._remember(b"x", self.record((-1, 1 << 40), ())),
                lambda: dispatcher._remember(b"x", self.record((), (1,))),
                lambda: self.remember(self.record((0, 99), ())),
                lambda: self.remember(self.record((0,), (self.array(),))),
                lambda: dispatcher._fingerprint(*some(2)),
                lambda: dispatcher._fingerprint((), {}),
                dispatcher._forget,
                lambda: self.jitted[0]._attach((), ()),
                lambda: self.jitted[0]._fingerprint((self.hostile(),), {}),
                lambda: Array.__add__(*some(r.randrange(4))),
                lambda: Array.__add__(self.array(), r.choice(anything), x=1),
                lambda: EAGER.process(*some(r.randrange(4))),
                lambda: EAGER.process(r.choice(anything), (self.array(),) * 9),
            ]
        )()

    def record(self, leaves: Any, constants: Any) -> Any:
        """A record of a call that gives nothing."""
        fields = dict.fromkeys(FIELDS) | {"out_types": ()}
        return native.CallRecord(**{**fields, "leaves": leaves, "constants": constants})

    def remember(self, record: Any) -> None:
        """A call that is led to this record."""
        x, f = self.array(), st.jit(lambda x: x)
        f._remember(f._fingerprint((x,), {}), record)
        f(x)

    def plant_garbage(self) -> None:
        """Objects whose finalizers compute, call, clear, or empty a list that is passed."""
        xs = [self.array() for _ in range(6)]
        x = self.array()
        f = self.rng.choice(self.jitted)
        act = self.rng.choice(
            [lambda: x + x, lambda: f([x]), clear_everything, xs.clear, lambda: xs.append(None),
             gc.collect, x.delete]
        )  # fmt: skip
        Cycle(act)
        f(xs)

    def clear(self) -> None:
        """Let go of all tables, now and then."""
        if self.rng.random() < 0.05:
            clear_everything()

    def donate(self) -> None:
        """Arrays whose buffers were taken, in operators and calls."""
        x = self.array()
        if self.rng.random() < 0.5:
            x.delete()
        else:
            st.jit(lambda x: x * 2, donate_argnums=0)(x)
        self.rng.choice(
            [lambda: x + x, lambda: 1 - x, lambda: snp.sin(x), lambda: self.jitted[0]([x])]
        )()

    def evaluate(self) -> None:
        """Operations of one, two and many operands."""
        x = self.array()
        self.rng.choice(
            [
                lambda: snp.sin(x),
                lambda: snp.maximum(x, x),
                lambda: snp.where(x > 0, x, x),
                lambda: st.lax.concatenate([x] * self.rng.randrange(1, 12), 0),
                lambda: snp.sort(x),
                x.sum,
                lambda: x.at[0].set(1),
            ]
        )()

    def nest(self) -> None:
        """Transformations, during which the short ways rest."""
        x = snp.ones(3)
        st.grad(lambda x: (self.jitted[0]([x])[0] * x).sum())(x)
        st.vmap(lambda x: self.jitted[1]([x, x]))(snp.ones((2, 3)))

    def tamper(self) -> None:
        """Faces and types that are not what they should be."""
        x = self.array()
        if native is not None:
            other = self.array()
            setattr(x, self.rng.choice(["_host", "_buffer"]), None)
            if self.rng.random() < 0.3:
                del x.type
            self.rng.choice([lambda: x + other, lambda: other + x, lambda: self.jitted[0]([x])])()


EXPECTED = (Exception, KeyboardInterrupt)
"""Whatever a hostile call may raise: what is looked for are crashes, hangs and wrong values."""


def work(fuzzer: Fuzzer, end: float, wrong: list[BaseException]) -> None:
    """Steps until the time has come."""
    while time.monotonic() < end and not wrong:
        try:
            if fuzzer.main and fuzzer.rng.random() < 0.2:
                signal.setitimer(signal.ITIMER_REAL, 10 ** fuzzer.rng.uniform(-5, -2))
            fuzzer.step()
        except Wrong as error:
            wrong.append(error)
        except EXPECTED:
            pass
        if state.interpreter is not EAGER:
            wrong.append(Wrong(f"the interpreter at rest is {state.interpreter}"))


def load_everything() -> None:
    """Import all modules: an interrupt in an import may leave a lock of CPython's held for ever."""
    for module in pkgutil.walk_packages(st.__path__, "stretto."):
        if module.name.split(".")[-1] != "__main__":
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                if error.name not in ("torch", "sympy"):  # which need not be there
                    raise


def main() -> int:
    """Fuzz with three threads; 1 where a value was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"fuzz: seed {options.seed}, {options.seconds:g} s", flush=True)
    faulthandler.enable()
    load_everything()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda problem: None  # what finalizers raise, of which there is much
    sys.setswitchinterval(1e-5)
    gc.set_threshold(50, 2, 2)

    def planted(*_: Any) -> None:
        raise random.choice([KeyboardInterrupt, Planted, ValueError, RuntimeError])("planted")

    signal.signal(signal.SIGALRM, planted)
    end = time.monotonic() + options.seconds
    wrong: list[BaseException] = []
    fuzzers = [Fuzzer(options.seed + i, i == 0) for i in range(3)]
    threads = [
        threading.Thread(target=work, args=(f, end, wrong), daemon=True) for f in fuzzers[1:]
    ]
    for thread in threads:
        thread.start()
    while time.monotonic() < end and not wrong:
        try:
            work(fuzzers[0], end, wrong)
        except EXPECTED:  # planted between two steps
            continue
    signal.setitimer(signal.ITIMER_REAL, 0)
    for thread in threads:
        thread.join(120)
        if thread.is_alive():
            wrong.append(Wrong("a thread hangs"))
            faulthandler.dump_traceback()
    for error in wrong:
        print(f"fuzz: {error}", file=sys.stderr)
    print(f"fuzz: {sum(sum(f.done.values()) for f in fuzzers)} steps, {len(wrong)} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
