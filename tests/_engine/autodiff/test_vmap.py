"""Vectorization of flat functions and of programs."""

import numpy as np
import pytest

import stretto as st
from stretto import make_graph
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import jvp_flat
from stretto._engine.autodiff.vmap import AxisSize, Batched, to_axis, vmap_flat, vmap_program
from stretto._engine.core.config import over_axis, settings
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import Primitive, Refused, names_axis
from stretto._engine.core.program import check
from stretto._engine.ops.collective.primitives import AxisIndex, PSum
from stretto._engine.ops.identities import Example
from tests.any_size import holds

MANY = as_value(np.arange(12, dtype=np.float32).reshape(3, 4))
ONE = as_value(np.array([1.0, 2.0, 3.0, 4.0], np.float32))


def test_examples_lie_along_an_axis():
    (out,), (axis,) = vmap_flat(lambda x: [snp.sum(x * 2.0)], 3, [MANY], [0])
    assert axis == 0
    np.testing.assert_allclose(out, np.sum(MANY, 1) * 2)
    (out,), (axis,) = vmap_flat(lambda x: [snp.cumsum(x)], 4, [MANY], [1])
    np.testing.assert_allclose(to_axis(out, 4, axis, 1), np.cumsum(MANY, 0))


def test_inside_there_is_one_example():
    seen = []
    vmap_flat(lambda x, y: seen.extend([x, y, x + y]) or [x], 3, [MANY, ONE], [0, None])
    assert [v.shape for v in seen] == [(4,), (4,), (4,)]
    assert [type(v) is Batched for v in seen] == [True, False, True]


def test_what_is_not_mapped_is_done_once_and_not_repeated():
    program = make_graph(
        lambda x, y: vmap_flat(lambda x, y: [snp.exp(y) + x, snp.cos(y)], 3, [x, y], [0, None])[0]
    )(MANY, ONE)
    shapes = {e.primitive.name: e.outputs[0].type.shape for e in program.equations}
    assert shapes["exp"] == shapes["cos"] == (4,)


def test_an_output_that_is_the_same_for_all():
    outs, axes = vmap_flat(
        lambda x, y: [y, snp.sin(y), as_value(2.0), x], 3, [MANY, ONE], [0, None]
    )
    assert axes == [None, None, None, 0]
    assert outs[0] is ONE and outs[3] is MANY


def test_vmaps_nest():
    def inner(x):
        (out,), (axis,) = vmap_flat(lambda y: [x + y], 4, [ONE], [0])
        return [to_axis(out, 4, axis, 0)]

    (out,), (axis,) = vmap_flat(inner, 4, [ONE], [0])
    np.testing.assert_allclose(to_axis(out, 4, axis, 0), np.add.outer(ONE, ONE))


def test_weak_types_stay_weak():
    def f(x):
        repeated = to_axis(x, 3, None, 0)
        (out,), _ = vmap_flat(lambda v: [v * 2.0], 3, [repeated], [0])
        return out

    program = make_graph(f)(1.5)
    assert program.in_types[0].weak_type and program.out_types[0].weak_type
    assert program.out_types[0].shape == (3,)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_to_axis(axis, wanted):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    whole = x if axis is None else np.stack([x] * 4, axis)
    got = to_axis(as_value(whole), 4, axis, wanted)
    np.testing.assert_array_equal(got, np.stack([x] * 4, wanted))
    assert to_axis(as_value(x), 4, None, None).shape == (2, 3)


PROGRAM = make_graph(lambda x, y: (x * y, snp.cos(y), 2.0))(ONE, ONE)


@pytest.mark.parametrize(
    "mapped, given",
    [
        ((True, False), (True, False, False)),
        ((False, True), (True, True, False)),
        ((True, True), (True, True, False)),
        ((False, False), (False, False, False)),
    ],
)
def test_programs(mapped, given):
    made, mask = vmap_program(PROGRAM, 3, mapped)
    check(made)
    assert mask == given
    args = [MANY if m else ONE for m in mapped]
    assert made.in_types == tuple(a.type for a in args)
    got = evaluate(made, args)
    rows = [
        [as_value(np.asarray(a)[i]) if m else a for a, m in zip(args, mapped, strict=True)]
        for i in range(3)
    ]
    loop = [evaluate(PROGRAM, row) for row in rows]
    for k, (g, m) in enumerate(zip(got, given, strict=True)):
        want = np.stack([np.asarray(outs[k]) for outs in loop]) if m else loop[0][k]
        np.testing.assert_allclose(g, want, rtol=1e-6)


def test_forced_outputs_are_mapped():
    made, mask = vmap_program(PROGRAM, 3, (True, False), (True, True, True))
    check(made)
    assert mask == (True, True, True)
    assert [t.shape for t in made.out_types] == [(3, 4), (3, 4), (3,)]


def test_programs_are_made_once_for_each_size():
    assert vmap_program(PROGRAM, 3, (True, True))[0] is vmap_program(PROGRAM, 3, (True, True))[0]
    assert (
        vmap_program(PROGRAM, 3, (True, True))[0] is not vmap_program(PROGRAM, 5, (True, True))[0]
    )


def test_derivative_inside_and_outside():
    def slope(x):
        return jvp_flat(lambda v: [snp.sin(v)], [x], [as_value(np.float32(1))])[1]

    (out,), _ = vmap_flat(slope, 4, [ONE], [0])
    np.testing.assert_allclose(out, np.cos(ONE), rtol=1e-6)
    _, (tangent,) = jvp_flat(
        lambda v: vmap_flat(lambda x: [snp.sin(x)], 4, [v], [0])[0], [ONE], [ONE]
    )
    np.testing.assert_allclose(tangent, np.cos(ONE) * np.asarray(ONE), rtol=1e-6)


def test_a_name_is_bound_while_the_function_runs():
    def f(x):
        assert dict(settings.axes) == {"i": 3} and type(settings.axes["i"]) is int
        return [PSum("i", 3)(x), AxisIndex("i", 3)(), PSum("i", 3)(ONE)]

    outs, axes = vmap_flat(f, AxisSize(3, "i"), [MANY], [0])
    assert axes == [None, 0, None]
    assert not settings.axes
    np.testing.assert_allclose(outs[0], np.sum(MANY, 0))
    np.testing.assert_array_equal(outs[1], [0, 1, 2])
    np.testing.assert_allclose(outs[2], np.multiply(ONE, 3))


def test_programs_know_the_name():
    """A program that names the axis is mapped by name, even where none of its inputs is."""
    both = make_graph(lambda x: (x + AxisIndex("i", 3)(), PSum("i", 3)(x)))
    program = over_axis("i", 3, both, ONE)
    made, mask = vmap_program(program, AxisSize(3, "i"), (False,))
    check(made)
    assert mask == (True, False)
    assert names_axis(program.effects, "i") and not made.effects
    other, mask = vmap_program(program, AxisSize(3, "j"), (True,))
    assert mask == (True, True) and names_axis(other.effects, "i")
    assert vmap_program(program, AxisSize(3, "i"), (False,))[0] is made
    assert vmap_program(program, AxisSize(3, "j"), (True,))[0] is other


def test_the_name_goes_to_programs_and_the_number_to_operations():
    sizes = []

    class Sized(Primitive):
        reference = lower = jvp = transpose = padded = Refused("it is never run")

        def infer(self, x):
            return x

        def vmap(self, size, args, axes):
            sizes.append(size)
            return args[0], axes[0]

    class Held(Sized):
        holds_programs = True

    vmap_flat(lambda x: [Sized()(x), Held()(x)], AxisSize(3, "i"), [MANY], [0])
    assert [type(n) for n in sizes] == [int, AxisSize]
    assert sizes[1].name == "i"


X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
OVER_ANY_NUMBER = {
    "relu": st.nn.relu,
    "scan": lambda x: st.lax.scan(lambda c, y: (c * 0.5 + y, c), x[0], x),
    "cond": lambda x: st.lax.cond(x.sum() > 0, snp.sin, lambda x: -x, x),
    "jit": st.jit(lambda x: x.sum() + x),
    "checkpoint": st.checkpoint(lambda x: snp.sin(x).sum() + x),
    "product": lambda x: snp.outer(x, x) @ x,
    "take": lambda x: snp.take(x, snp.argsort(x)),
}


@pytest.mark.parametrize("name", OVER_ANY_NUMBER)
def test_any_number_of_examples(name):
    f = st.vmap(OVER_ANY_NUMBER[name])
    holds(f, [X], {(0, 0): 0}, tolerance=10)
    holds(f, [X], {(0, 0): 0, (0, 1): 1}, tolerance=10)


def test_examples_of_any_size():
    product = lambda x, w: st.vmap(lambda a: a @ w)(x)
    holds(product, [np.stack([X, -X]), X[:3]], {(0, 1): 0}, tolerance=10)


def test_what_escapes_is_refused():
    kept = []
    vmap_flat(lambda x: kept.extend((x, st.new_ref(x))) or [x], 3, [MANY], [0])
    with pytest.raises(st.errors.EscapedTracerError, match=r"one of 3 examples .*, while <lam"):
        bool(kept[0])
    with pytest.raises(st.errors.EscapedTracerError, match="a reference of type float32"):
        kept[1][...]


def test_an_example_says_where_the_array_of_all_comes_from():
    said = []
    f = lambda x: vmap_flat(lambda y: said.append(y.origin()) or [y], 3, [x], [0])[0]
    f(MANY)
    make_graph(f)(MANY)
    assert said == [
        "one of 3 examples that vmap maps over",
        "one of 3 examples that vmap maps over, the argument x",
    ]


def test_an_error_is_that_of_one_example():
    """The types in a message are those that the function sees."""
    with pytest.raises(ValueError, match=r"float32\[4\]") as raised:
        vmap_flat(lambda x: [st.lax.reshape(x, (5,))], 3, [MANY], [0])
    assert "float32[3,4]" not in str(raised.value)


def test_examples_are_marked_only_while_faults_are_looked_for():
    """The mark says along which axis the examples lie; truth values need none."""
    many = lambda x: vmap_flat(lambda x: [snp.sin(x) * 2.0, x > 1], 4, [x], [1])[0]

    def marks():
        found = [e.primitive for e in make_graph(many)(MANY).equations]
        return [p.axis for p in found if p.__class__ is Example]

    assert marks() == []
    with st.config(debug_nans=True):
        assert marks() == [1, 1]


def test_a_fault_names_its_example():
    x = MANY.at[1, 2].set(0.0).at[0, 0].set(1.0)
    for axis, expected in ((0, 1), (1, 2)):
        with st.config(debug_infs=True), pytest.raises(st.errors.NonFiniteError) as raised:
            st.vmap(lambda row: 1 / row, axis)(x)
        assert raised.value.fault.examples == (expected,)
