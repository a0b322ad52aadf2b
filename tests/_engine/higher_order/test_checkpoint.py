"""Checkpoints: the laws, plain values and derivatives everywhere, what is kept, memory."""

from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.primitive import CALLBACK, CARRIED, NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.program import check
from stretto._engine.higher_order.checkpoint import Checkpoint
from stretto.laws import c64, f32, f64, i32, law

P = st.checkpoint_policies


def chain(x, w):
    for _ in range(3):
        x = snp.sin(x @ w) * x
    return x


def counted(x, n):
    return snp.tanh(x) * n, n + 1


def squared(x):
    return st.checkpoint(lambda x: snp.sin(x * x))(x) * x


LAWS = [
    law(Checkpoint, st.checkpoint(chain), f32(2, 3), f32(3, 3)),
    law(Checkpoint, st.checkpoint(chain, policy=P.dots_saveable), f64(2, 2), f64(2, 2)),
    law(Checkpoint, st.checkpoint(chain, prevent_cse=False), f64(2, 2), f64(2, 2)),
    law(Checkpoint, st.checkpoint(lambda x: x * snp.exp(x)), c64(2)),
    law(Checkpoint, st.checkpoint(counted), f32(2), i32(2)),
    law(Checkpoint, st.grad(lambda x: st.checkpoint(squared)(x).sum()), f32(2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


# The same values and derivatives

inner = st.jit(lambda x, w: snp.tanh(x @ w))


@st.custom_jvp
def wave(x):
    return snp.sin(x)


@wave.defjvp
def _(primals, tangents):
    return wave(*primals), 3.0 * snp.cos(primals[0]) * tangents[0]


def scanned(x, w):
    return st.lax.scan(lambda c, _: (snp.sin(c @ w) + c, snp.sum(c)), x, None, length=4)


def branched(x, w):
    return st.lax.cond(x[0, 0] > 0, lambda x: snp.sin(x @ w), lambda x: x * 2.0, x)


def nested(x, w):
    f = st.checkpoint(lambda x: snp.sin(x @ w), policy=P.dots_saveable)
    return f(f(x)) * x


FUNCTIONS = {
    "chain": chain,
    "jit": lambda x, w: inner(inner(x, w), w) * x,
    "custom": lambda x, w: wave(x) @ wave(w),
    "scan": lambda x, w: scanned(x, w)[0] * scanned(x, w)[1].sum(),
    "cond": branched,
    "fori": lambda x, w: st.lax.fori_loop(0, 3, lambda i, c: snp.sin(c @ w) + i, x),
    "nested": nested,
    "named": lambda x, w: snp.sin(st.checkpoint_name(x @ w, "product")) * x,
    "input": lambda x, w: x,
    "constant": lambda x, w: snp.ones((2, 2)),
    "unused": lambda x, w: x * x,
}
POLICIES = {
    "none": None,
    "everything": P.everything_saveable,
    "dots": P.dots_saveable,
    "names": P.save_only_these_names("product"),
}
COMPILED = {"chain": "dots", "jit": "dots", "custom": "dots", "named": "names"}


def agree(got, want):
    for g, w in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        close = 1e-12 if g.dtype == np.float64 else 1e-6
        np.testing.assert_allclose(g, w, rtol=close, atol=close / 10)


def everything(f, x, w, v):
    """Values and derivatives of each kind, of a function of two matrices."""
    total = lambda x, w: snp.sum(f(x, w) ** 2)
    slopes = st.grad(total, (0, 1))
    linear = st.linearize(f, x, w)[1]
    return {
        "value": f(x, w),
        "grad": slopes(x, w),
        "jvp": st.jvp(f, (x, w), (v, w)),
        "linear": linear(v, w),
        "second": st.grad(lambda x: snp.sum(slopes(x, w)[0] * v))(x),
        "forward of reverse": st.jvp(lambda x: slopes(x, w), (x,), (v,)),
        "jacobian": st.jacrev(f, 1)(x, w),
        "vmap of grad": st.vmap(slopes, (0, None))(snp.stack([x, v]), w),
        "grad of vmap": st.grad(lambda w: st.vmap(total, (0, None))(snp.stack([x, v]), w).sum())(w),
    }


@pytest.mark.parametrize(
    "name, policy",
    [(name, policy) for name in FUNCTIONS for policy in POLICIES
     if policy in ("none", "dots") or name in ("jit", "scan", "nested", "named")],
)  # fmt: skip
def test_same_as_without(name, policy):
    f = FUNCTIONS[name]
    g = st.checkpoint(f, policy=POLICIES[policy])
    with st.enable_x64():
        x, w, v = (snp.asarray(a) for a in np.random.default_rng(0).uniform(-1, 1, (3, 2, 2)))
        want = everything(f, x, w, v)
        agree(everything(g, x, w, v), want)
        if policy == COMPILED.get(name, "none"):
            agree(st.jit(partial(everything, g))(x, w, v), want)


block = lambda c, w: snp.sin(c @ w) * c


def in_scan(block, x, ws):
    return snp.sum(st.lax.scan(lambda c, w: (block(c, w), None), x, ws)[0])


def in_cond(block, x, ws):
    branch = lambda x: block(block(x, x), x)
    return snp.sum(st.lax.cond(ws[0, 0, 0] > 5, snp.sin, branch, x))


def in_while(block, x, ws):
    step = lambda s: (s[0] + 1, block(s[1], s[1]))
    return snp.sum(st.lax.while_loop(lambda s: s[0] < 3, step, (ws[0, 0, 0] * 0, x))[1])


def test_forward_derivatives_of_gradients_through_a_custom_vjp():
    @st.custom_vjp
    def f(x):
        return snp.sin(x)

    f.defvjp(lambda x: (snp.sin(x), snp.cos(x)), lambda c, ct: (3.0 * c * ct,))
    curve = lambda g: st.jvp(st.grad(lambda x: g(g(x))), (0.3,), (1.0,))
    agree(curve(st.checkpoint(f)), curve(f))
    agree(st.jit(lambda: curve(st.checkpoint(f)))(), curve(f))


@pytest.mark.parametrize("prevent_cse", [True, False])
@pytest.mark.parametrize(
    "f, derive", [(in_scan, st.grad), (in_cond, st.grad), (in_while, st.jacfwd)]
)
def test_in_loops_and_branches(f, derive, prevent_cse):
    def derivatives(block, x, ws):
        slope = derive(lambda x: f(block, x, ws))
        return slope(x), derive(lambda x: snp.sum(slope(x) ** 2))(x)

    kept = partial(derivatives, st.checkpoint(block, prevent_cse=prevent_cse))
    with st.enable_x64():
        x, *ws = (snp.asarray(a) for a in np.random.default_rng(1).uniform(-1, 1, (4, 2, 2)))
        want = derivatives(block, x, snp.stack(ws))
        agree(kept(x, snp.stack(ws)), want)
        agree(st.jit(kept)(x, snp.stack(ws)), want)


# What is kept


def parts_of(f, *args):
    """The checkpoints that a function with its gradient is: there, and back, which may be none."""
    program = st.make_graph(st.value_and_grad(lambda *xs: snp.sum(f(*xs))))(*args)
    check(program)
    found = [e for e in program.equations if type(e.primitive) is Checkpoint]
    again = [e for e in found if e.primitive.again]
    return found[0], again[-1] if again else None


def names_in(equation):
    return [e.primitive.name for e in equation.primitive.program.equations]


x22, w22 = snp.full((2, 2), 0.5), snp.full((2, 2), 0.25)


def test_without_a_policy_the_arguments_are_kept():
    forward, again = parts_of(st.checkpoint(chain), x22, w22)
    assert len(forward.outputs) == 1
    assert list(again.inputs[:2]) == list(forward.inputs)  # beside them, the cotangent
    assert len(again.inputs) == 3
    assert names_in(again)[:2] == ["dot_general", "sin"]
    assert names_in(again).count("cos") == 3


def test_what_the_policy_allows_is_kept():
    forward, again = parts_of(st.checkpoint(chain, policy=P.dots_saveable), x22, w22)
    assert [e.primitive.name for e in forward.primitive.program.equations].count("cos") == 0
    assert len(forward.outputs) == 1 + 3
    assert {v for v in again.inputs if v in forward.outputs} == set(forward.outputs[1:])
    assert names_in(again).count("dot_general") == 3  # each backwards, by x alone


def test_kept_outputs_are_not_given_twice():
    forward, _ = parts_of(st.checkpoint(snp.exp, policy=P.everything_saveable), snp.ones(3))
    assert len(forward.outputs) == 1


def test_where_nothing_is_computed_again_nothing_is_kept_apart():
    assert parts_of(st.checkpoint(chain, policy=P.everything_saveable), x22, w22)[1] is None
    f = st.grad(lambda x: snp.sum(st.checkpoint(lambda x: 2.0 * x)(x)))
    assert "inlineable" not in st.jit(f).lower(x22).as_text()


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_the_compiler_leaves_it_apart(prevent_cse):
    f = st.grad(lambda x: snp.sum(st.checkpoint(chain, prevent_cse=prevent_cse)(x, w22)))
    assert ('inlineable = "false"' in st.jit(f).lower(x22).as_text()) is prevent_cse


def test_the_compiler_leaves_one_without_settings_apart():
    program = st.make_graph(chain)(x22, w22)
    f = st.grad(lambda x: snp.sum(Checkpoint(program)(x, w22)[0]))
    assert 'inlineable = "false"' in st.jit(f).lower(x22).as_text()


def test_what_is_computed_again_is_not_written_in_place():
    f = lambda x: 2 * st.checkpoint(lambda x: snp.sin(snp.cos(x)))(x)
    (forward,), (first, again) = (
        [e.primitive for e in st.make_graph(g)(1.0).equations if e.primitive.name == "checkpoint"]
        for g in (f, st.grad(f))
    )
    assert [p.inlined() is p.program for p in (forward, first)] == [True, True]
    assert again.inlined() is None


def test_a_jitted_function_hides_nothing_from_a_policy():
    f = lambda x, w: inner(inner(x, w), w)
    forward, _ = parts_of(st.checkpoint(f, policy=P.dots_saveable), x22, w22)
    assert len(forward.outputs) == 1 + 2
    assert names_in(forward).count("dot_general") == 2
    forward, _ = parts_of(st.checkpoint(f), x22, w22)
    assert names_in(forward) == ["call", "call"]  # with no policy to ask, it stays compiled


def test_a_scan_of_checkpoints_keeps_the_carry_alone():
    step = st.checkpoint(lambda c, w: snp.sin(snp.sin(c @ w)))
    f = lambda x, ws: snp.sum(st.lax.scan(lambda c, w: (step(c, w), None), x, ws)[0])
    program = st.make_graph(st.value_and_grad(f, (0, 1)))(x22, snp.ones((5, 2, 2)))
    forward = next(e for e in program.equations if e.primitive.name == "scan")
    assert [v.type.shape for v in forward.outputs] == [(2, 2), (5, 2, 2)]


def test_a_checkpointed_scan_keeps_nothing_on_the_way_there():
    f = st.checkpoint(lambda x, w: scanned(x, w)[0])
    forward, again = parts_of(f, x22, w22)
    loops = [
        [v.type.shape for v in e.outputs]
        for part in (forward, again)
        for e in part.primitive.program.equations
        if e.primitive.name == "scan"
    ]
    assert loops == [[(2, 2)], [(2, 2), (4, 2, 2)], [(2, 2)]]


class Seen(Primitive):
    """Tells that it was run."""

    effects = frozenset({CALLBACK})
    log: ClassVar = []
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR
    padded = CARRIED

    def infer(self, x):
        return x

    def reference(self, x):
        self.log.append(float(x))
        return x + 1

    def lower(self, b, x):
        return x

    def vmap(self, size, args, axes):
        return self(*args), axes[0]


@pytest.mark.parametrize("inside", [lambda f: f, st.checkpoint, st.jit], ids=["", "twice", "jit"])
@pytest.mark.parametrize("used", [True, False])
def test_what_is_seen_from_outside_happens_once(used, inside):
    def f(x):
        y = Seen()(snp.sin(x))
        return snp.sin(x) * (y if used else 2.0)

    Seen.log.clear()
    with st.config(disable_jit=True):
        slope = st.grad(st.checkpoint(inside(f)))(0.5)
    assert len(Seen.log) == 1
    s, c = np.sin(0.5), np.cos(0.5)
    np.testing.assert_allclose(slope, c * (s + 1) if used else 2 * c, rtol=1e-6)


# Memory


def blocks(wrap):
    """Eight blocks of four layers each; an activation takes a quarter of a MiB."""

    def block(x, ws):
        for w in ws:
            h = snp.tanh(x @ w)
            x = x + snp.sin(h) * h
        return st.checkpoint_name(x, "block")

    block = wrap(block)

    def loss(x, ws):
        for w in ws:
            x = block(x, w)
        return snp.sum(x * x)

    return loss


def temporary(f, *args):
    """MiB that the compiled gradient needs beside arguments and results.

    Products are XLA's own: it does not count what YNNPACK has in memory inside of a fusion.
    """
    sums = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_REDUCE"}
    compiled = st.jit(st.grad(f), compiler_options=sums).lower(*args).compile()
    return compiled.memory_analysis().temp_size_in_bytes / 2**20


def test_memory_of_a_deep_chain():
    x, ws = snp.ones((1024, 64)), [[snp.ones((64, 64)) for _ in range(4)] for _ in range(8)]
    used = {
        name: temporary(blocks(partial(st.checkpoint, policy=policy)), x, ws)
        for name, policy in {
            "none": None,
            "dots": P.dots_saveable,
            "everything": P.everything_saveable,
        }.items()
    }
    plain = temporary(blocks(lambda f: f), x, ws)
    merged = temporary(blocks(partial(st.checkpoint, prevent_cse=False)), x, ws)
    # 32 activations without; 8 block inputs and the 4 of one block with.
    assert plain > 32 / 4
    assert used["none"] < 0.45 * plain
    assert 0.8 * plain < used["dots"] < 1.2 * plain  # one product a layer is all that it needs
    # Of each tanh its result, for the product behind it, and its argument, for its slope; plain
    # computes the one from the other again.
    assert used["everything"] < 2.05 * plain
    assert merged > 0.95 * plain  # the compiler found that the values were there already


def test_memory_of_a_checkpointed_step_in_a_scan():
    def loss(wrap):
        def layer(x, w):
            h = snp.tanh(x @ w)
            return snp.exp(-snp.sin(h) * h) @ w + x

        step = wrap(layer)
        return lambda x, ws: snp.sum(st.lax.scan(lambda c, w: (step(c, w), None), x, ws)[0] ** 2)

    x, ws = snp.ones((1024, 64)), snp.ones((16, 64, 64))
    plain = temporary(loss(lambda f: f), x, ws)
    for prevent_cse in (True, False):
        kept = temporary(loss(partial(st.checkpoint, prevent_cse=prevent_cse)), x, ws)
        assert kept < 0.4 * plain
        assert kept < (16 + 6) / 4  # a carry a step, and what one step makes
