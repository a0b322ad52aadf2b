"""The table of operations that hold programs, and of transformations inside programs.

Their bodies are random blocks that also read variables from outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.property.programs import Block, Var
from tests.property.writer import Skip, Writer, operation

__all__ = ["DEEPEST", "apply_body", "body_of"]

DEEPEST = 2


def _operands(w: Writer, fewest: int, most: int) -> list[Var]:
    """Variables handed to a body explicitly."""
    if w.depth >= DEEPEST:
        raise Skip
    count = w.rng.randint(fewest, most)
    return [w.inexact() for _ in range(count)]


def body_of(
    w: Writer, operands: Sequence[Var], results: Sequence[Var] | None = None, closed: bool = False
) -> Block:
    """A body of some operations; its results are like those asked for, or any."""
    params = [w.param(v) for v in operands]
    inside = w.inner(params, closed)
    inside.grow(w.rng.randint(1, 3))
    if results is None:
        made = [v for v in inside.scope if v.kind in ("float", "complex")]
        if not made:
            raise Skip
        outs = [made[-1], w.rng.choice(made)][: w.rng.randint(1, 2)]
    else:
        outs = [inside.fit(v.kind, v.shape, v.low, v.high) for v in results]
    return inside.block("body", params, outs)


def apply_body(w: Writer, wrap: str, closed: bool = False, setup: Sequence[str] = ()) -> None:
    """Apply a transformed body; ``wrap`` has ``BODY`` for its name."""
    operands = _operands(w, 1, 3)
    body = body_of(w, operands, closed=closed)
    named = [line.replace("BODY", body.name) for line in (wrap, *setup)]
    args = ", ".join(f"{{{i}}}" for i in range(len(operands)))
    outs = [w.fresh(v) for v in body.results]
    text = f"{named[0]}({args})" + ("" if len(outs) > 1 else "[0]")
    w.statement(text, operands, outs, [body], named[1:])


@operation("jit", 0.5)
def _jit(w: Writer) -> None:
    apply_body(w, "st.jit(BODY)")


@operation("twice", 0.4)
def _twice(w: Writer) -> None:
    """One jitted function called at two places, with the results of the first for the second."""
    if w.depth >= DEEPEST:
        raise Skip
    x = w.within(w.inexact(), -1, 1)
    param = w.param(x)
    inside = w.inner([param])
    inside.grow(w.rng.randint(1, 3))
    result = inside.fit(x.kind, x.shape, x.low, x.high)
    body = inside.block("body", [param], [result], returns="{0}")
    setup = [f"own_{body.name} = st.jit({body.name})"]
    text = f"own_{body.name}(own_{body.name}({{0}}))"
    w.statement(text, [x], [w.fresh(x)], [body], setup)


@operation("weak", 0.3)
def _weak(w: Writer) -> None:
    """Python numbers for a carry and a branch, which become what the rest is."""
    if w.depth >= DEEPEST:
        raise Skip
    v = w.scalar(-1, 1)
    text = w.rng.choice([
        "lax.cond({0} > 0.0317, lambda: 0.5, lambda: {0})",
        "lax.fori_loop(0, 2, lambda i, c: c * 0.5 + {0}, 0.25)",
        "lax.scan(lambda c, x: (c + x * {0}, c), 0.0, snp.arange(3) * 0.1)[0] + {0}",
        "lax.map(lambda i: i * {0}, np.arange(2))[1]",
        "lax.switch((1 + {0}).astype(int), [lambda c: 2.0 * c, lambda c: 1 - c], {0})",
    ])  # fmt: skip
    w.emit(text, [v], (), -3, 3)


def _targets(w: Writer) -> list[Var]:
    """Types of results that several branches agree on."""
    outs = [w.fresh(w.any_of(lambda v: v.kind != "bool"))]
    if w.rng.random() < 0.4:
        outs.append(w.fresh(w.float()))
    return outs


@operation("cond", 1.2)
def _cond(w: Writer) -> None:
    operands = _operands(w, 0, 2)
    predicate, outs = w.truth(), _targets(w)
    branches = [body_of(w, operands, outs) for _ in range(2)]
    args = "".join(f", {{{i + 1}}}" for i in range(len(operands)))
    text = f"lax.cond({{0}}, {branches[0].name}, {branches[1].name}{args})"
    _unpacked(w, text, [predicate, *operands], outs, branches)


@operation("switch", 0.8)
def _switch(w: Writer) -> None:
    operands = _operands(w, 0, 2)
    count = w.rng.randint(1, 3)
    index, outs = w.integer(count + 1), _targets(w)  # one too many: clamped
    branches = [body_of(w, operands, outs) for _ in range(count)]
    names = ", ".join(b.name for b in branches)
    args = "".join(f", {{{i + 1}}}" for i in range(len(operands)))
    text = f"lax.switch({{0}}, [{names}]{args})"
    _unpacked(w, text, [index, *operands], outs, branches)


def _unpacked(
    w: Writer, text: str, operands: Sequence[Var], outs: Sequence[Var], bodies: Sequence[Block]
) -> None:
    w.statement(text if len(outs) > 1 else f"{text}[0]", operands, outs, bodies)


@operation("guarded", 0.5)
def _guarded(w: Writer) -> None:
    """A branch that gives NaN wherever it is not taken."""
    if w.depth >= DEEPEST:
        raise Skip
    x, y = w.scalar(-1, 1), w.float(-4, 4)
    px, py = w.param(x), w.param(y)
    one, other = w.inner([px, py]), w.inner([px, py])
    one.current = other.current = w.current
    taken = one.emit("snp.log({0} + 0.1) * snp.sqrt({0}) * {1}", [px, py], y.shape, -12, 12)
    rest = other.emit("{1} - {0}", [px, py], y.shape, -5, 5)
    bodies = [
        one.block("body", [px, py], [taken], returns="{0}"),
        other.block("body", [px, py], [rest], returns="{0}"),
    ]
    text = f"lax.cond({{0}} > 0.0317, {bodies[0].name}, {bodies[1].name}, {{0}}, {{1}})"
    w.statement(text, [x, y], [Var(w.name("v"), "float", y.shape, -12, 12)], bodies)


def _carry(w: Writer) -> list[Var]:
    """Variables to carry; what a step returns for them lies within their bounds."""
    carry = [w.within(v, -4, 4) for v in _operands(w, 1, 2)]
    counts = [v for v in w.scope if v.kind == "int" and not v.ndim and v.low >= 0 and v.high <= 8]
    if counts and w.rng.random() < 0.3:
        carry.append(w.rng.choice(counts))
    return carry


def _widened(v: Var) -> Var:
    """A carried variable may take any value within symmetric bounds."""
    bound = max(1.0, v.bound)
    return Var(v.name, v.kind, v.shape, 0 if v.kind == "int" else -bound, bound)


@operation("fori_loop", 0.8)
def _fori_loop(w: Writer) -> None:
    carry = _carry(w)
    start = w.rng.choice([0, 0, 1])
    stop = start + w.rng.choice([0, 1, 2, 3])
    params = [_widened(w.param(v)) for v in carry]
    index = Var(w.name("i"), "int", (), start, max(stop - 1, start))
    inside = w.inner([index, *params])
    inside.grow(w.rng.randint(1, 3))
    results = [inside.fit(p.kind, p.shape, p.low, p.high) for p in params]
    body = _loop_body(inside, f"{index.name}, c", "c", [index, *params], params, results)
    init = "".join(f"{{{i}}}, " for i in range(len(carry)))
    text = f"lax.fori_loop({start}, {stop}, {body.name}, ({init}))"
    outs = [w.fresh(p) for p in params]
    _unpacked(w, text, carry, outs, [body])


def _loop_body(
    inside: Writer,
    signature: str,
    state: str,
    params: Sequence[Var],
    carried: Sequence[Var],
    results: Sequence[Var],
) -> Block:
    unpack = f"{''.join(p.name + ', ' for p in carried)}= {state}".replace(", =", ",=")
    return inside.block("body", params, results, signature, unpack=[unpack.replace(",=", ", =")])


@operation("scan", 1.5)
def _scan(w: Writer) -> None:
    carry = _carry(w) if w.rng.random() < 0.85 else []
    if w.depth >= DEEPEST:
        raise Skip
    first = w.inexact(fits=lambda v: v.ndim > 0)
    length = first.shape[0]
    xs = [first]
    if w.rng.random() < 0.4:
        xs.append(w.any_of(lambda v: v.kind != "bool" and v.shape[:1] == (length,)))
    params = [_widened(w.param(v)) for v in carry]
    slices = [w.param(v, v.shape[1:]) for v in xs]
    inside = w.inner([*params, *slices])
    inside.grow(w.rng.randint(1, 3))
    results = [inside.fit(p.kind, p.shape, p.low, p.high) for p in params]
    able = [v for v in inside.scope if length * v.size <= 27 and v.ndim < 3]
    ys = [w.rng.choice(able)] if able and w.rng.random() < 0.8 else []
    n = len(results)
    head, tail = ("".join(f"{{{i}}}, " for i in part) for part in (range(n), range(n, n + len(ys))))
    unpack = [
        f"({''.join(p.name + ', ' for p in params)}) = c",
        f"({''.join(s.name + ', ' for s in slices)}) = x",
    ]
    body = inside.block(
        "body", [*params, *slices], [*results, *ys], "c, x", f"({head}), ({tail})", unpack
    )
    init = "".join(f"{{{i}}}, " for i in range(len(carry)))
    stacked = "".join(f"{{{i}}}, " for i in range(len(carry), len(carry) + len(xs)))
    options = f"reverse={w.rng.random() < 0.3}, unroll={w.rng.choice([1, 1, 2, True])}"
    outs = [w.fresh(p) for p in params] + [w.fresh(y, (length, *y.shape)) for y in ys]
    if not outs:
        raise Skip
    text = f"sum(lax.scan({body.name}, ({init}), ({stacked}), {options}), ())"
    _unpacked(w, text, [*carry, *xs], outs, [body])


@operation("map", 0.5)
def _map(w: Writer) -> None:
    if w.depth >= DEEPEST:
        raise Skip
    x = w.inexact(fits=lambda v: v.ndim > 0)
    param = w.param(x, x.shape[1:])
    inside = w.inner([param])
    inside.grow(w.rng.randint(1, 3))
    able = [v for v in inside.scope if x.shape[0] * v.size <= 27 and v.ndim < 3]
    result = w.rng.choice(able[-3:]) if able else param
    body = inside.block("body", [param], [result], returns="{0}")
    options = w.rng.choice(["", "", ", batch_size=2"])
    outs = [w.fresh(result, (x.shape[0], *result.shape))]
    w.statement(f"lax.map({body.name}, {{0}}{options})", [x], outs, [body])


@operation("vmap", 0.6)
def _vmap(w: Writer) -> None:
    _mapped(w, "st.vmap(BODY, ")


@operation("planned vmap", 0.4)
def _planned_vmap(w: Writer) -> None:
    """A vmap whose formulation is chosen when it is lowered."""
    plan = w.rng.choice(["at once", "batched", "wide", "written out", "in turn"])
    _mapped(w, f"planned({plan!r}, BODY, ")


def _mapped(w: Writer, call: str) -> None:
    if w.depth >= DEEPEST:
        raise Skip
    x = w.inexact(fits=lambda v: v.ndim > 0)
    axis = w.axis(x)
    param = w.param(x, x.shape[:axis] + x.shape[axis + 1 :])
    inside = w.inner([param])
    inside.grow(w.rng.randint(1, 3))
    able = [v for v in inside.scope if x.shape[axis] * v.size <= 27 and v.ndim < 3]
    result = w.rng.choice(able[-3:]) if able else param
    body = inside.block("body", [param], [result], returns="{0}")
    out = w.rng.randint(0, result.ndim)
    shape = (*result.shape[:out], x.shape[axis], *result.shape[out:])
    text = f"{call.replace('BODY', body.name)}in_axes={axis}, out_axes={out})({{0}})"
    w.statement(text, [x], [w.fresh(result, shape)], [body])


def _derivative(w: Writer, text: str, count: int) -> None:
    """A derivative taken inside: of a real scalar function of real variables."""
    if w.depth >= DEEPEST:
        raise Skip
    operands = [w.float() for _ in range(count)]
    params = [w.param(v) for v in operands]
    inside = w.inner(params)
    inside.grow(w.rng.randint(1, 3))
    result = inside.scalar()
    body = inside.block("body", params, [result], returns="{0}")
    x = operands[0]
    out = Var(w.name("v"), "float", x.shape if "grad" in text else (), -1e3, 1e3)
    w.statement(text.replace("BODY", body.name), operands, [out], [body])


@operation("grad", 0.3)
def _grad(w: Writer) -> None:
    if "forward" in w.ways:
        raise Skip
    _derivative(w, "st.grad(BODY)({0}, {1})", 2)


@operation("jvp", 0.3)
def _jvp(w: Writer) -> None:
    if "reverse" in w.ways:
        raise Skip
    _derivative(w, "st.jvp(BODY, ({0},), (snp.cos({0}),))[1]", 1)


# Loops whose number of steps depends on data: no reverse derivative.


@operation("while_loop", 4.0, way="forward")
def _while_loop(w: Writer) -> None:
    carry = [w.within(v, -4, 4) for v in _operands(w, 1, 2)]
    params = [_widened(w.param(v)) for v in carry]
    count = Var(w.name("n"), "int", (), 0, 3)
    inside = w.inner([count, *params])
    inside.grow(w.rng.randint(1, 3))
    results = [inside.fit(p.kind, p.shape, p.low, p.high) for p in params]
    test = w.inner([Var(count.name, "int", (), 0, 3), *params])
    test.current = w.current
    level = test.scalar()
    # `test` reads the same parameters as the body, so both are written with one signature.
    more = test.emit(f"({{0}} < 3) & ({{1}} > {w.odd()})", [count, level], (), kind="bool")
    names = "".join(p.name + ", " for p in [count, *params])
    step = inside.block(
        "body", [count, *params], [count, *results], "c",
        "({0} + 1, " + "".join(f"{{{i + 1}}}, " for i in range(len(results))) + ")",
        [f"({names}) = c"],
    )  # fmt: skip
    head = test.block("test", [count, *params], [more], "c", "{0}", [f"({names}) = c"])
    init = "0, " + "".join(f"{{{i}}}, " for i in range(len(carry)))
    text = f"lax.while_loop({head.name}, {step.name}, ({init}))"
    outs = [Var(w.name("v"), "int", (), 0, 3), *(w.fresh(p) for p in params)]
    w.statement(text, carry, outs, [head, step])


@operation("fori_loop_of_traced_length", 3.0, way="forward")
def _traced_fori_loop(w: Writer) -> None:
    carry = _carry(w)
    stop = w.integer(4)
    params = [_widened(w.param(v)) for v in carry]
    index = Var(w.name("i"), "int", (), 0, 2)
    inside = w.inner([index, *params])
    inside.grow(w.rng.randint(1, 3))
    results = [inside.fit(p.kind, p.shape, p.low, p.high) for p in params]
    body = _loop_body(inside, f"{index.name}, c", "c", [index, *params], params, results)
    init = "".join(f"{{{i + 1}}}, " for i in range(len(carry)))
    text = f"lax.fori_loop(0, {{0}}, {body.name}, ({init}))"
    _unpacked(w, text, [stop, *carry], [w.fresh(p) for p in params], [body])
