"""Series: which operations they cost, and what becomes of values without a derivative."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.jet import jet_flat


def terms_like(x, order):
    return [snp.ones_like(x)] + [snp.zeros_like(x)] * (order - 1)


def growth(fun):
    def count(order):
        traced = lambda x: st.jet(fun, (x,), (terms_like(x, order),))
        return len(st.make_graph(traced)(snp.ones(3)).equations)

    return count(12) / count(6)


def test_the_work_grows_as_a_power_of_the_order():
    # of squares for one product, of cubes for chains of powers; nested derivatives grow by 2⁶
    assert growth(lambda x: x * x) < 4.5
    assert growth(snp.sin) < 5
    assert growth(snp.tanh) < 9
    assert growth(lambda x: snp.log(x) / (1 + x)) < 5


def test_terms_that_are_zero_are_none():
    x, dx = snp.ones(2), snp.full(2, 3.0)
    [terms] = jet_flat(lambda x: [2 * x], [[x, dx]], 3)
    assert [t if t is None else t.tolist() for t in terms] == [[2, 2], [6, 6], None, None]
    first, second = jet_flat(lambda x: [x > 0, snp.cos(snp.zeros(2))], [[x, dx]], 1)
    assert first[1] is second[1] is None and first[0].dtype == bool


def test_a_value_that_is_not_expanded_is_computed_once():
    def f(x, y):
        return [x * snp.sin(y)]

    traced = lambda x, y: jet_flat(f, [[x, x, x], [y]], 2)[0]
    program = st.make_graph(traced)(snp.ones(3), snp.ones(3))
    assert [e.primitive.name for e in program.equations].count("sin") == 1


def test_factors_of_matrices_are_expanded():
    x = snp.asarray(np.random.default_rng(0).standard_normal((4, 4)), "float32")
    dx = snp.asarray(np.random.default_rng(1).standard_normal((4, 4)), "float32")
    symmetric = lambda a: a + a.T
    for fun in (
        lambda a: snp.linalg.eigvalsh(symmetric(a)),
        lambda a: snp.linalg.eigh(symmetric(a))[0],
        lambda a: snp.linalg.svd(a, compute_uv=False),
        lambda a: snp.linalg.svd(a)[1],
    ):
        value, (first,) = st.jet(fun, (x,), ((dx,),))
        want, tangent = st.jvp(fun, (x,), (dx,))
        np.testing.assert_allclose(value, want, rtol=1e-5)
        np.testing.assert_allclose(first, tangent, rtol=1e-4, atol=1e-5)


def test_an_escaped_series_says_what_was_expanded():
    kept = []

    def keeping(x):
        kept.append(x * 2)
        return x

    st.jet(keeping, (1.0,), ((1.0,),))
    with pytest.raises(st.errors.EscapedTracerError, match="while keeping was transformed"):
        kept[0] + 1


@pytest.mark.parametrize(("at", "value", "slope", "bend"), [(2.0, 4, 4, 2), (-3.0, 3, -1, 0)])
def test_python_branches_on_what_is_expanded(at, value, slope, bend):
    f = lambda x: x * x if x > 0 else -x
    out, (first, second) = st.jet(f, (at,), ((1.0, 0.0),))
    assert (out, first, second) == (value, slope, bend)
    assert st.grad(lambda x: st.jet(f, (x,), ((1.0,),))[1][0])(at) == bend


def test_a_series_that_escapes_cannot_be_looked_at():
    kept = []

    def keeping(x):
        kept.extend((x, st.new_ref(x)))
        return x

    st.jet(keeping, (1.0,), ((1.0,),))
    with pytest.raises(st.errors.EscapedTracerError, match="a value expanded as a series, while k"):
        bool(kept[0])
    with pytest.raises(st.errors.EscapedTracerError, match="a reference of type float32"):
        kept[1][...]


def test_a_series_of_a_traced_value_says_where_that_comes_from():
    def f(x):
        return x if x > 0 else -x

    with pytest.raises(st.errors.TracedValueError, match=r"traced: computed by gt .* argument x"):
        st.jit(lambda x: st.jet(f, (x * 2,), ((1.0,),)))(1.0)
    said = []
    st.jit(lambda x: st.jet(lambda y: said.append(y.origin()) or y, (x,), ((1.0,),)))(1.0)
    assert said == ["the argument x"]


def test_nothing_is_kept_after_an_operation():
    kept = []

    def f(x):
        kept.append(x)
        return snp.tan(x) * st.jit(snp.arctan)(x)

    value, (slope,) = st.jet(f, (0.5,), ((1.0,),))
    expander = kept[0].interpreter
    assert not expander._known and not expander._within
    np.testing.assert_allclose(value, np.tan(0.5) * np.arctan(0.5), rtol=1e-6)
    known = np.arctan(0.5) / np.cos(0.5) ** 2 + np.tan(0.5) / 1.25
    np.testing.assert_allclose(slope, known, rtol=1e-6)
    program = st.make_graph(lambda x: st.jet(f, (x,), ((1.0,),))[1][0])(0.5)
    np.testing.assert_allclose(evaluate(program, [snp.array(0.5)])[0], known, rtol=1e-6)


def test_a_slope_that_is_a_number_has_no_further_ones():
    @st.custom_jvp
    def still(x):
        return x * 1.0

    still.defjvp(lambda primals, tangents: (still(*primals), snp.zeros(2)))
    x = snp.ones(2)
    [terms] = jet_flat(lambda x: [still(x)], [[x, x]], 3)
    assert [t if t is None else t.tolist() for t in terms] == [[1, 1], [0, 0], None, None]


def test_python_may_look_at_the_value_that_is_expanded():
    """At the value, and not at a slope, of which the derivative is by what it was computed from."""
    seen = []

    def f(x):
        seen.append((float(x), int(2 * x), bool(x > 2)))
        return x * float(x) if x > 2 else -x

    value, terms = st.jet(f, (3.0,), ([1.0, 0.5],))
    assert seen == [(3.0, 6, True)] and float(value) == 9
    assert [float(t) for t in terms] == [3, 1.5]
    assert [float(t) for t in st.jet(f, (1.5,), ([4.0],))[1]] == [-4]


@pytest.mark.parametrize("series", [[2], [2, None], [2, 1], [snp.int32(2), snp.int32(1)]])
def test_integers_and_what_has_no_slopes_are_constants(series):
    """Functions get them as they are."""
    given = []

    def f(x, n, c):
        given.extend([n, c])
        return [x * c * n]

    x, n = snp.ones(2), [snp.asarray(series[0]), *series[1:]]
    c = snp.full(2, 3.0)
    [terms] = jet_flat(f, [[x, x], n, [c, None]], 1)
    assert given[0] is n[0] and given[1] is c
    assert [t.tolist() for t in terms] == [[6, 6], [6, 6]]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_quotients_by_what_is_not_expanded(order):
    """What is divided is expanded, and what it is divided by may be, too, to fewer terms."""
    x, y = np.float32(1.5), np.array([2.0, -4.0], np.float32)
    series = [np.float32(0.5 * n) for n in range(1, order + 1)]
    value, terms = st.jet(lambda x: x / snp.asarray(y), (x,), (series,))
    np.testing.assert_allclose(value, x / y)
    for term, given in zip(terms, series, strict=True):
        np.testing.assert_allclose(term, given / y, rtol=1e-6)
    later = [np.float32(0.0)] * (order - 1) + [np.float32(1.0)]
    _, terms = st.jet(lambda x: (x * y) / (1 + 0 * x), (x,), (later,))
    np.testing.assert_allclose(terms[-1], y, rtol=1e-6)
