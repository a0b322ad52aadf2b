"""Forward differentiation of flat functions and of programs."""

import numpy as np
import pytest

import stretto as st
from stretto import make_graph
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jvp import Dual, instantiate, jvp_flat, jvp_program
from stretto._engine.core.interpreter import Interpreter, as_value, state
from stretto._engine.core.program import check
from stretto._engine.core.threads import holding

X = as_value(np.array([0.5, 1.5], np.float32))
DX = as_value(np.array([1.0, -2.0], np.float32))


class Spy(Interpreter):
    """Hands on to the interpreter around it, and keeps the names of what it was given."""

    def __init__(self):
        self.names = []
        self.outer = state.interpreter
        self.ended = False

    def process(self, primitive, args):
        self.names.append(primitive.name)
        return holding(state, "interpreter", self.outer, primitive, *args)


def test_values_and_tangents():
    (y,), (dy,) = jvp_flat(lambda x: [snp.sin(x) * x], [X], [DX])
    x, dx = np.asarray(X), np.asarray(DX)
    np.testing.assert_allclose(y, np.sin(x) * x, rtol=1e-6)
    np.testing.assert_allclose(dy, (np.cos(x) * x + np.sin(x)) * dx, rtol=1e-6)


def test_a_zero_tangent_stays_symbolic():
    outs, tangents = jvp_flat(
        lambda x, y: [y, snp.floor(x), snp.sin(y), x > y, x], [X, X], [DX, None]
    )
    assert [t is None for t in tangents] == [True, True, True, True, False]
    assert outs[0] is X
    assert tangents[4] is DX


def test_what_has_no_tangent_is_not_wrapped():
    seen = []

    def f(x, y):
        seen.extend([x, y, snp.cos(y), snp.floor(x), x > 1])
        return [x]

    jvp_flat(f, [X, X], [DX, None])
    assert [type(v) is Dual for v in seen] == [True, False, False, False, False]


def test_work_apart_from_the_variables_is_done_once():
    spy = Spy()
    fun = lambda x, y: [snp.exp(snp.cos(y)) * x]
    holding(state, "interpreter", spy, jvp_flat, fun, [X, X], [DX, None])
    assert spy.names.count("cos") == spy.names.count("exp") == 1
    assert spy.names.count("mul") == 2


def test_integers_have_no_tangent():
    n = as_value(3)
    outs, tangents = jvp_flat(lambda n, x: [n * 2, x * n], [n, X], [DX, DX])
    assert tangents[0] is None
    np.testing.assert_allclose(tangents[1], np.asarray(DX) * 3)
    assert int(outs[0]) == 6


def test_perturbations_are_not_confused():
    # d/dx (x d/dy (x + y)) = 1, and not 2
    def outer(x):
        _, (slope,) = jvp_flat(lambda y: [x + y], [as_value(2.0)], [as_value(1.0)])
        return [x * slope]

    _, (d,) = jvp_flat(outer, [as_value(3.0)], [as_value(1.0)])
    assert float(d) == 1.0


def test_second_order():
    def first(x):
        return jvp_flat(lambda y: [y * y * y], [x], [as_value(1.0)])[1]

    _, (d,) = jvp_flat(first, [as_value(2.0)], [as_value(1.0)])
    assert float(d) == 12.0


PROGRAM = make_graph(lambda x, y: (snp.sin(x) * y, snp.cos(y), 2.0))(X, X)


@pytest.mark.parametrize(
    "active, given",
    [
        ((True, True), (True, True, False)),
        ((True, False), (True, False, False)),
        ((False, False), (False, False, False)),
    ],
)
def test_programs(active, given):
    made, mask = jvp_program(PROGRAM, active)
    check(made)
    assert mask == given
    assert made.name == "jvp_f" or made.name.startswith("jvp_")
    assert len(made.inputs) == 2 + sum(active)
    assert len(made.outputs) == 3 + sum(given)
    tangents = [DX] * sum(active)
    got = evaluate(made, [X, X, *tangents])
    outs, douts = jvp_flat(
        lambda x, y: evaluate(PROGRAM, [x, y]), [X, X], [DX if a else None for a in active]
    )
    for g, w in zip(got, [*outs, *(d for d in douts if d is not None)], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_forced_tangents_are_zeros():
    made, mask = jvp_program(PROGRAM, (True, False), (False, True, True))
    check(made)
    assert mask == (True, True, True)
    *_, second, third = evaluate(made, [X, X, DX])
    np.testing.assert_array_equal(second, [0, 0])
    assert float(third) == 0


def test_programs_are_made_once():
    assert jvp_program(PROGRAM, (True, False))[0] is jvp_program(PROGRAM, (True, False))[0]
    assert jvp_program(PROGRAM, (True, False))[0] is not jvp_program(PROGRAM, (True, True))[0]


def test_instantiate():
    zero, kept = instantiate([X, X], [None, DX], (True, True))
    np.testing.assert_array_equal(zero, [0, 0])
    assert zero.type is X.type and kept is DX
    assert instantiate([X], [None], None) == [None]


def test_what_escapes_cannot_be_looked_at():
    kept = []
    jvp_flat(lambda x: kept.extend((x, st.new_ref(x))) or [x], [as_value(2.0)], [as_value(1.0)])
    with pytest.raises(st.errors.EscapedTracerError, match="a value being differentiated, while <"):
        bool(kept[0])
    with pytest.raises(st.errors.EscapedTracerError, match="a reference of type float32"):
        kept[1][...]


def test_python_looks_at_values_that_are_concrete():
    seen = []
    jvp_flat(lambda x: seen.append((float(x), x.origin())) or [x], [as_value(2.0)], [as_value(1.0)])
    assert seen == [(2.0, "a value being differentiated")]
    with pytest.raises(st.errors.TracedValueError, match="the argument x"):
        st.jit(lambda x: jvp_flat(lambda y: [float(y) * y], [x], [x]))(1.0)


def scopes(f):
    """The scopes of the equations that ``f`` is recorded as, at one number."""
    found = make_graph(f)(1.0).equations
    return {(e.primitive.name, e.place[2]) for e in found if e.place is not None}


def choosing(x):
    return snp.sin(x) * snp.where(x > 0, x, 0.0)


@pytest.mark.parametrize(
    "derivative",
    [lambda x: st.jvp(choosing, (x,), (x,)), lambda x: st.linearize(choosing, x)[1](x)],
    ids=["jvp", "linearize"],
)
def test_what_a_rule_records_is_in_its_scope_only_while_faults_are_looked_for(derivative):
    assert {scope for _, scope in scopes(derivative)} == {""}
    with st.config(debug_nans=True):
        found = scopes(derivative)
    expected = {
        ("cos", "jvp(sin)"),
        ("gt", "jvp(gt)"),
        ("select", "jvp(select)"),
        ("mul", "jvp(mul)"),
    }
    assert found >= expected and all(scope for _, scope in found)


def test_programs_are_made_for_each_setting_that_changes_them():
    active = (True, True)
    plain = jvp_program(PROGRAM, active)[0]
    with st.config(debug_nans=True):
        found = jvp_program(PROGRAM, active)[0]
    assert found is not plain and jvp_program(PROGRAM, active)[0] is plain


def of_factors(x):
    """An array of the factors of a symmetric matrix, and the matrix that they make."""
    values, vectors = snp.linalg.eigh(x)
    scaled = vectors * values
    return scaled, scaled @ vectors.T


@pytest.mark.parametrize(
    "use",
    [
        lambda a, b: of_factors(a)[1] @ of_factors(b)[1],
        lambda a, b: (of_factors(a)[1] + of_factors(b)[1]) ** 3,
        lambda a, b: snp.sin(of_factors(a)[0]) * snp.cos(of_factors(b)[0]),
        lambda a, b: snp.exp(of_factors(a)[0] @ of_factors(b)[0].T / 4),
    ],
    ids=["product", "sum", "by element", "of factors"],
)
def test_factors_of_one_derivative_meet_those_of_another(use):
    """What the outer derivative made of factors is a constant to the inner one."""
    rng = np.random.default_rng(0)
    a, b, da, db = [m + m.T for m in rng.standard_normal((4, 3, 3))]
    total = lambda a, b: use(a, b).sum()
    with st.enable_x64():
        by_b = lambda a: st.jvp(lambda b: total(a, b), (b,), (db,))[1]
        found = st.jvp(by_b, (a,), (da,))[1]
        backward = st.grad(lambda a: (st.grad(total, 1)(a, b) * db).sum())(a)
        step = 1e-5
        known = (by_b(a + step * da) - by_b(a - step * da)) / (2 * step)
        np.testing.assert_allclose(found, known, rtol=1e-6)
        np.testing.assert_allclose((backward * da).sum(), known, rtol=1e-6)


@pytest.mark.parametrize("after", [lambda y: y, snp.log, lambda y: y * 2], ids=["as", "log", "mul"])
def test_tangents_that_each_member_has_a_mask_for(after):
    """Which elements of a member have a slope is found in its own program."""

    def chosen(w, x):
        y = x @ w
        return after(snp.where(y > 0.5, y, 1.0))

    rng = np.random.default_rng(0)
    w, x, dw = (
        snp.asarray(rng.standard_normal(shape)) for shape in ((4, 5, 3), (4, 2, 5), (4, 5, 3))
    )

    def forward(w, dw):
        with st.config(plan="batched"):
            return st.jvp(lambda w: st.jit(st.vmap(chosen))(w, x), (w,), (dw,))

    assert "vmap" in str(st.make_graph(forward)(w, dw))
    found, wanted = (
        st.jit(forward)(w, dw),
        zip(
            *[st.jvp(lambda w: chosen(w, x[i]), (w[i],), (dw[i],)) for i in range(4)],  # noqa: B023
            strict=True,
        ),
    )
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
