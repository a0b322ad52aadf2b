"""Programs over examples that lie one behind the other: what goes by rows, and what does not."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.linearize import linearize_program
from stretto._engine.core.program import Literal, Program
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type, has_rows
from stretto._engine.higher_order.fixed_sizes import (
    Examples,
    Padding,
    packed_program,
    padded_program,
    variable_of_rows,
)
from stretto._engine.ops.varying_sizes import varying
from tests._engine.higher_order.test_fixed_sizes_padding import PROGRAMS, program_of

N, M = size_variable("n"), size_variable("m")
(V,) = N.variables()
F32 = np.dtype(np.float32)
RNG = np.random.default_rng(0)
LENGTHS = [3, 1, 5]
PARTS = [RNG.normal(size=(n, 4)).astype(F32) for n in LENGTHS]
W = RNG.normal(size=(4, 4)).astype(F32)


def close(a, b, error=1e-5):
    np.testing.assert_allclose(a, b, rtol=error, atol=error)


def by_rows(equation):
    types, outs = ([a.type for a in atoms] for atoms in (equation.inputs, equation.outputs))
    moving = [t for t in (*types, *outs) if varying(t)]
    return (
        len({variable_of_rows(t) for t in moving}) == 1
        and variable_of_rows(moving[0]) is not None
        and all(map(has_rows, outs))
        and equation.primitive.by_rows(types, outs)
    )


def drawn(type, n):
    shape = tuple([size if isinstance(size, int) else n for size in type.shape])
    values = np.round(RNG.normal(size=shape) * 3)  # whole: sums are exact in whatever order
    return np.asarray(values > 0 if type.dtype == bool else values).astype(type.dtype)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operations_that_go_by_rows_do(name):
    """On rows of two examples, one behind the other, they give those of each."""
    f, shapes = PROGRAMS[name]
    program, *_ = program_of(f, shapes)
    programs = [program]
    if name in ("element-wise", "attention", "softmax", "layer norm", "variance"):
        with st.config(disable_jit=True):
            linear = linearize_program(program, (True,) * len(program.inputs)).linear
            programs.append(linear)
    for equation in [e for p in programs for e in p.equations]:
        if not any(varying(v.type) for v in equation.outputs) or not by_rows(equation):
            continue
        inputs = list(dict.fromkeys(a for a in equation.inputs if not isinstance(a, Literal)))
        one = Program(inputs, [equation], equation.outputs, "one")
        variable = variable_of_rows(equation.outputs[0].type)
        xs = [drawn(a.type, 5) for a in inputs]
        cut = lambda rows, xs=xs, inputs=inputs: [
            x[rows] if varying(a.type) else x for x, a in zip(xs, inputs, strict=True)
        ]
        run = lambda n, xs, one=one, variable=variable: evaluate(
            padded_program(one, (variable,), {variable: n}), [np.int32(n), *map(snp.asarray, xs)]
        )
        with st.config(disable_jit=True):
            whole, first, second = run(5, xs), run(3, cut(slice(3))), run(2, cut(slice(3, 5)))
        for out, *parts in zip(whole, first, second, strict=True):
            np.testing.assert_array_equal(out, np.concatenate(parts), err_msg=str(equation))


def layer(w, x):
    """An MLP with a norm, element by element."""
    y = (x - x.mean(-1, keepdims=True)) / snp.sqrt(x.var(-1, keepdims=True) + 1e-3)
    return x + nn.functional.gelu(y @ w) @ w.T


def attend(w, x):
    return nn.functional.softmax((x @ w) @ x.T, -1) @ x


def text(f, *args):
    return st.jit(f).lower(*args).as_text()


def test_what_goes_by_elements_sees_no_rectangle():
    r = st.ragged(PARTS)
    assert r._values.shape == (16, 4) and r._most == 8
    several = st.vmap(layer, in_axes=(None, 0))
    assert "tensor<3x8x" not in text(several, W, r)
    loss = lambda w, r: (several(w, r)._values ** 2).sum()
    lowered = text(st.grad(loss), W, r)
    assert "tensor<3x8x" not in lowered and "tensor<3x4x4x" not in lowered
    assert "tensor<3x8x" in text(st.vmap(attend, in_axes=(None, 0)), W, r)


def test_products_for_weights_are_one_for_all_examples():
    r = st.ragged(PARTS)
    loss = lambda w, r: st.vmap(lambda x: (attend(w, x) ** 2).mean())(r).sum()
    assert "tensor<3x4x4x" not in text(st.grad(loss), W, r)
    twice = lambda w, r: st.vmap(lambda x: ((x @ w.T) @ w).sum(0))(r).sum()
    lowered = text(st.grad(twice), W, r)
    assert "tensor<3x4x4x" not in lowered
    close(st.grad(twice)(W, r), st.grad(lambda w: sum(((x @ w.T) @ w).sum() for x in PARTS))(W))


def test_what_is_behind_the_last_counts_for_nothing():
    r = st.ragged(PARTS)
    values = np.array(r._values)
    values[sum(LENGTHS) :] = np.nan
    spoilt = type(r)._of(snp.asarray(values), r.lengths, r._most, False, 1)
    several = st.vmap(lambda w, x: (layer(w, x), attend(w, x).sum(0)), in_axes=(None, 0))
    for out, expected in zip(several(W, spoilt), several(W, r), strict=True):
        for one, other in zip(st.tree.leaves(out), st.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(one, other)
    loss = lambda w, r: st.vmap(lambda x: (attend(w, layer(w, x)) ** 2).mean())(r).sum()
    by_w, by_r = st.grad(loss, (0, 1))(W, spoilt)
    close(by_w, st.grad(loss)(W, r))
    assert (np.asarray(by_r._values[sum(LENGTHS) :]) == 0).all()


def test_arguments_with_other_room():
    r = st.ragged(PARTS)
    tight = type(r)._of(r.values, r.lengths, r._most, False, 1)
    wide = type(r)._of(snp.concatenate([r._values, r._values]), r.lengths, r._most, False, 1)
    expected = [x * x for x in PARTS]
    for one, other in ((tight, r), (r, tight), (r, wide), (wide, tight)):
        out = st.vmap(lambda x, y: x * y)(one, other)
        for a, b in zip(out.to_list(), expected, strict=True):
            close(a, b)


def test_values_of_an_example_for_each_of_its_elements():
    r, scale = st.ragged(PARTS), np.arange(1.0, 4.0, dtype=F32)
    f = lambda x, s: layer(W, x) * s + x.mean(0)
    out = st.vmap(f)(r, scale)
    for a, x, s in zip(out.to_list(), PARTS, scale, strict=True):
        close(a, f(snp.asarray(x), s))
    own = np.stack([W, 2 * W, -W])  # products with a matrix of each example's own
    out = st.vmap(layer)(own, r)
    for a, x, w in zip(out.to_list(), PARTS, own, strict=True):
        close(a, layer(w, snp.asarray(x)))


def loss(w, r):
    return st.vmap(lambda x: (attend(w, layer(w, x)) ** 2).mean())(r).sum()


def loop(w):
    return sum((attend(w, layer(w, snp.asarray(x))) ** 2).mean() for x in PARTS)


def test_derivatives_of_higher_order():
    r = st.ragged(PARTS)
    v = RNG.normal(size=W.shape).astype(F32)
    close(st.hvp(lambda w: loss(w, r), (W,), (v,)), st.hvp(loop, (W,), (v,)), 1e-2)
    reverse = lambda f: st.grad(lambda w: (st.grad(f)(w) * v).sum())
    close(reverse(lambda w: loss(w, r))(W), reverse(loop)(W), 1e-2)


def test_members_with_weights_of_their_own():
    r, members = st.ragged(PARTS), np.stack([W, -W, W / 2])
    got = st.jit(st.vmap(lambda w: st.grad(loss)(w, r)))(members)
    close(got, [st.grad(loop)(w) for w in members], 2e-4)
    doubled = st.vmap(st.grad(lambda w: (st.grad(loss)(w, r) ** 2).sum()))(members)
    one = st.grad(lambda w: (st.grad(loop)(w) ** 2).sum())
    close(doubled[1], one(members[1]), np.abs(doubled[1]).max() * 1e-3)


def test_rows_are_of_one_variable_in_front():
    rows = lambda *shape: variable_of_rows(array_type(shape, F32))
    assert rows(N, 3) == rows(N) == V
    assert rows(3, N) is rows(N, N) is rows(2 * N) is rows(N, M) is rows(3) is rows() is None
    examples = Examples(3, (V,), (8,), (16,))
    assert examples.room(array_type((N, 2), F32)) == 16
    assert examples.room(array_type((2, N), F32)) is None


def test_written_once_for_the_same_examples():
    program, *_ = record(lambda x: ([(x * 2).sum(0)], None), [array_type((N, 4), F32)])
    forms = [
        packed_program(program, Examples(3, (V,), (8,), (room,)), (True, True), ())
        for room in (16, 16, 24)
    ]
    assert forms[0] is forms[1] is not forms[2]
    assert [t.shape for t in forms[0].in_types] == [(3,), (16, 4)]
    assert [t.shape for t in forms[0].out_types] == [(3, 4)]


def test_results_that_are_one_number_everywhere():
    r = st.ragged([snp.ones((n, 3, 2)) for n in LENGTHS])
    twos, sums = st.vmap(lambda x: (snp.full_like(x, 2.0), x.sum(0)))(r)
    assert [x.shape for x in twos.to_list()] == [(n, 3, 2) for n in LENGTHS]
    assert all([(np.asarray(x) == 2).all() for x in twos.to_list()])
    np.testing.assert_array_equal(sums[:, 0, 0], LENGTHS)
    program, *_ = record(lambda x: ([snp.full_like(x, 2.0)], None), [array_type((N, 4, 2), F32)])
    packed = packed_program(program, Examples(3, (V,), (8,), (16,)), (True, True), ())
    assert [t.shape for t in packed.out_types] == [(16, 4, 2)]


def test_a_program_of_fixed_sizes_is_written_once_but_where_notes_are_taken():
    program, *_ = record(lambda x: ([(x * 2).sum(0)], None), [array_type((N, 4), F32)])
    plain = Padding({V: 8}, {V: snp.int32(5)})
    fixed, (size,) = plain.closed(program)
    assert plain.closed(program)[0] is fixed and int(size) == 5
    noting = Padding({V: 8}, {V: snp.int32(5)})
    noting.notes = []
    noted = noting.closed(program)[0]
    assert noted is not fixed and [note.name for note in noting.notes][-1] == "reduce_sum"


SHARED = {
    "handed on": lambda b, x: x.sum(0) + b,
    "turned": lambda b, x: (x.sum(0) + b.reshape(2, 2).T.reshape(4)) * 1.5,
    "by rows": lambda b, x: x + b,
    "a product of rows": lambda b, x: snp.tanh(x * b).sum(0),
    "a greatest": lambda b, x: x.max(0) * b,
    "the first row": lambda b, x: x[0] * b + b,
    "chosen": lambda b, x: snp.where(x.sum(0) > 0, b, 2 * b),
    "alone": lambda b, x: b,
    "alone in rows": lambda b, x: snp.broadcast_to(b, x.shape),
    "of two sums": lambda b, x: (x @ snp.outer(b, b)).sum(0) + b,
}


@pytest.mark.parametrize("name", SHARED)
def test_slopes_of_what_examples_share_are_sums_over_them(name):
    f, r = SHARED[name], st.ragged(PARTS)
    b = RNG.normal(size=4).astype(F32)
    total = lambda b: st.vmap(lambda x: snp.sum(f(b, x)))(r).sum()
    wanted = sum([st.grad(lambda b: snp.sum(f(b, x)))(b) for x in PARTS])  # noqa: B023
    close(st.grad(total)(b), wanted, 1e-4)


@pytest.mark.parametrize(("k", "as_rows"), [(15, False), (16, True), (17, True)])
def test_work_that_is_worth_the_way_to_rows(k, as_rows):
    """From 16 times as many operations as the largest array has elements."""
    types = [array_type((N, k), F32), array_type((k, k), F32)]
    program, *_ = record(lambda x, w: ([(snp.sort(x, 0) @ w).sum(0)], None), types)
    packed = packed_program(program, Examples(3, (V,), (32,), (40,)), (True, True, False), ())
    (product,) = [e for e in packed.equations if e.primitive.name == "dot_general"]
    assert (product.outputs[0].type.shape == (40, k)) is as_rows
