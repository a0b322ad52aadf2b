"""Operations of the table that leave what optimizations look for.

Python loops, which tracing leaves as many copies of their bodies, with and without weights of each
turn; equal and unused work; constant arrays; functions called several times; large arrays.
"""

from __future__ import annotations

from tests.property.control import DEEPEST, body_of
from tests.property.programs import Block, Var
from tests.property.writer import FEW, Skip, Writer, operation

__all__ = ["write_loop"]

SHORT = (3, 3, 4, 5, 8)
LONG = (6, 12, 20, 40)

QUICK = (*FEW, "sin", "cos", "tanh", "exp2", "softmax", "index", "dynamic_slice", "at_add", "jit")
"""What bodies of loops of many turns have: little to compile."""


def _weights(w: Writer, like: Var, turns: int) -> tuple[str, list[Var]]:
    """An expression for the weights of the turns, which lie within the bounds of ``like``."""
    same = f"[{{1}}] * {turns}"
    kind = w.rng.choice(["shared", "scaled", "rows", "rows", "literals", "constants"])
    if kind == "shared" or like.low > 0 or like.high < 0:  # smaller ones are out of bounds
        return same, [like]
    if kind == "scaled":  # each computed by itself, before the loop
        return f"[{{1}} * (0.5 + 0.01 * i) for i in range({turns})]", [like]
    if kind == "rows":  # of one array
        scales = f"np.linspace(0.2, 0.9, {turns}).astype(FLOAT).reshape({(-1, *like.ndim * (1,))})"
        return f"list({{1}} * {scales})", [like]
    low, high = max(like.low, -1.0), min(like.high, 1.0)
    middle, half = (low + high) / 2, (high - low) / 2
    if like.kind != "float" or half < 0:
        return same, [like]
    if kind == "literals":
        value = f"{middle} + {half} * np.sin(i)"
        return f"[snp.full({like.shape}, {value}, FLOAT) for i in range({turns})]", []
    values = f"({middle} + {half} * np.sin(i + np.arange({float(like.size)})))"
    made = f"snp.asarray({values}.reshape({like.shape}).astype(FLOAT))"
    return f"[{made} for i in range({turns})]", []


def _turn(w: Writer, carried: Var, weight: Var, bound: float, turns: int) -> Block:
    """One turn: what is carried next, within this bound, and a result."""
    c, own = Var(w.name("p"), carried.kind, carried.shape, -bound, bound), w.param(weight)
    inside = w.inner([c, own])
    inside.current = w.current
    inside.grow(w.rng.randint(1, 3), QUICK if turns > 5 else ())
    if turns > 4:
        # Small steps, c + f(c) / 10 n: many turns take neither out of bounds nor far apart.
        step = inside.fit(c.kind, c.shape, -10, 10)
        step = inside.within(inside.with_work(step), -10, 10)
        text = f"{{0}} + {0.1 / turns} * {{1}}"
        after = inside.emit(text, [c, step], c.shape, -bound, bound, c.kind)
    else:
        after = inside.fit(c.kind, c.shape, -bound, bound)
    able = [v for v in inside.scope if v.kind in ("float", "complex")]
    seen = w.rng.choice(able[-3:])
    return inside.block("body", [c, own], [after, seen])


def write_loop(w: Writer, turns: int) -> None:
    """A Python loop of one body, or of two in turn, that may keep a result of each turn."""
    if w.depth >= DEEPEST:
        raise Skip
    x = w.within(w.inexact(), -4, 4)
    weight = w.inexact()
    bound = max(1.0, x.bound) + (1 if turns > 4 else 0)
    bodies = [_turn(w, x, weight, bound, turns) for _ in range(w.rng.choice([1, 1, 1, 2]))]
    text, operands = _weights(w, weight, turns)
    names = ", ".join(b.name for b in bodies)
    seen, *others = (b.results[1] for b in bodies)
    most = max(v.bound for v in (seen, *others))
    outs = [Var(w.name("v"), x.kind, x.shape, -bound, bound)]
    kept = w.rng.choice(["len", "snp.stack", "mean_of"])
    alike = all((v.kind, v.shape) == (seen.kind, seen.shape) for v in others)
    if not alike or (kept == "snp.stack" and turns * seen.size > 60):
        kept = "len"
    if kept != "len":
        shape = (turns, *seen.shape) if kept == "snp.stack" else seen.shape
        outs.append(Var(w.name("v"), seen.kind, shape, -most, most))
    call = f"repeat([{names}], {{0}}, {text}, {kept})" + ("[0]" if kept == "len" else "")
    w.statement(call, [x, *operands], outs, bodies)


@operation("repeated", 3.0)
def _repeated(w: Writer) -> None:
    write_loop(w, w.rng.choice(SHORT))


@operation("repeated often", 0.0)
def _repeated_often(w: Writer) -> None:
    """Only in programs about this: derivatives of derivatives of it take long."""
    write_loop(w, w.rng.choice(LONG))


@operation("heads", 0.3)
def _heads(w: Writer) -> None:
    """The same of several weights, side by side."""
    if w.depth >= DEEPEST:
        raise Skip
    x, weight = w.inexact(), w.inexact()
    count = w.rng.choice([3, 4, 6])
    body = body_of(w, [x, weight])
    text, operands = _weights(w, weight, count)
    call = f"mean_of([{body.name}({{0}}, w)[0] for w in {text}])"
    w.statement(call, [x, *operands], [w.fresh(body.results[0])], [body])


@operation("again", 0.8)
def _again(w: Writer) -> None:
    """What was computed before, once more."""
    if not w.statements:
        raise Skip
    before = w.rng.choice(w.statements[-6:])
    if any(v not in w.scope for v in before.outs):
        raise Skip
    outs = [w.fresh(v) for v in before.outs]
    w.statement(before.text, before.operands, outs, before.bodies, before.setup)


@operation("unused", 0.5)
def _unused(w: Writer) -> None:
    """Work whose results are thrown away."""
    if w.depth >= DEEPEST:
        raise Skip
    x, y = w.inexact(), w.inexact()
    body = body_of(w, [x])
    w.statement(f"({body.name}({{0}}), {{1}})[1]", [x, y], [w.fresh(y)], [body])


CONSTANTS = (
    "{0} * np.linspace(-1, 1, SIZE).reshape(SHAPE).astype(FLOAT)",
    "{0} * snp.cos(snp.arange(SIZE, dtype=FLOAT)).reshape(SHAPE)",
    "{0} * (snp.arange(SIZE) % 2 == 0).astype(FLOAT).reshape(SHAPE)",
    "{0} * snp.tri(3, dtype=FLOAT)[2, 1] * snp.eye(2, dtype=FLOAT)[0, 0]",
    "({0} * 1 + 0) * snp.ones(SHAPE, FLOAT) - snp.zeros(SHAPE, FLOAT)",
    "snp.where(np.arange(SIZE).reshape(SHAPE) % 3 == 1, {0}, -{0})",
    "{0}.ravel()[np.arange(SIZE)[::-1]].reshape(SHAPE)",
    # of more than 1,000 elements
    "{0} * snp.mean(np.cos(np.arange(1200.0)).astype(FLOAT))",
    "snp.mean(snp.sin({0}.ravel()[:1] + np.linspace(0, 1, 1200).astype(FLOAT))) * {0}",
    "{0} * (np.linspace(-1, 1, 1300).astype(FLOAT)[::13][np.arange(SIZE) % 7]).reshape(SHAPE)",
)


@operation("constants", 0.6)
def _constants(w: Writer) -> None:
    """Arrays that no argument decides, and work on them."""
    v = w.float()
    text = w.rng.choice(CONSTANTS).replace("SIZE", str(v.size)).replace("SHAPE", str(v.shape))
    w.emit(text, [v], v.shape, -v.bound, v.bound)


@operation("calls", 0.4)
def _calls(w: Writer) -> None:
    """One jitted function at several places, with arguments of two shapes."""
    if w.depth >= DEEPEST:
        raise Skip
    x = w.within(w.float(), -1, 1)
    scalar = Var(w.name("p"), "float", (), -1, 1)
    inside = w.inner([scalar])
    inside.grow(w.rng.randint(1, 2))
    result = inside.fit("float", (), -1, 1)
    body = inside.block("body", [scalar], [result], returns="{0}")
    own = f"own_{body.name}"
    setup = [f"{own} = st.jit({body.name})"]
    calls = [f"{own}(snp.mean({{0}}))", f"{own}(snp.max({{0}}))", f"{own}({own}(snp.min({{0}})))"]
    text = f"({' + '.join(calls)}) / 3 * {{0}}"
    out = Var(w.name("v"), "float", x.shape, -x.bound, x.bound)
    w.statement(text, [x], [out], [body], setup)


LARGE = (
    "snp.mean(snp.exp(-snp.square({0} + np.linspace(-1, 1, 200_000).astype(FLOAT))))",
    "snp.mean(snp.tanh(snp.broadcast_to({0}, (400, 500)) * np.linspace(-1, 1, 500).astype(FLOAT)))",
    "snp.mean(snp.log1p(snp.abs(snp.sin({0} * np.arange(100_000.0).astype(FLOAT) / 9))))",
    "snp.mean(snp.cumsum(snp.full(10_000, 1e-4, FLOAT) * {0}))",
    "snp.sort(snp.sin(np.arange(50_000.0).astype(FLOAT)) * {0})[::-5000].sum() * 0.1",
)


@operation("large", 0.0)
def _large(w: Writer) -> None:
    """Arrays that are compiled for outside of jit; only in programs about this."""
    w.emit(w.rng.choice(LARGE), [w.scalar(-1, 1)], (), -2, 2)
