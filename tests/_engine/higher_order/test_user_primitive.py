"""Operations of the user's own: the laws, rules given, derived and refused, misfits."""

import gc
import weakref

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.errors import EscapedTracerError, MissingRuleError
from stretto._engine.core.program import check
from stretto._engine.higher_order.user_primitive import UserPrimitive
from stretto.errors import TracedValueError
from stretto.laws import f32, f64, i32, law
from stretto.typing import SymbolicZero


@st.primitive
def power(x, *, n=3):
    return x**n


@power.def_jvp
def _(primals, tangents, *, n):
    (x,), (dx,) = primals, tangents
    return power(x, n=n), n * power(x, n=n - 1) * dx


@power.def_vmap
def _(axis_size, in_batched, x, *, n):
    return power(x, n=n), in_batched[0]


@st.primitive
def turned(a, x):
    """Linear in ``x``: two results, and a tree of arguments."""
    return {"out": a["matrix"] @ x, "sum": x.sum()}


@turned.def_infer
def _(a, x):
    return {
        "out": st.ShapeDtypeStruct(a["matrix"].shape[:1], x.dtype),
        "sum": st.ShapeDtypeStruct((), x.dtype),
    }


@turned.def_jvp
def _(primals, tangents):
    (a, x), (da, dx) = primals, tangents
    one, other = turned(a, dx), turned(da, x)
    return turned(a, x), {"out": one["out"] + other["out"], "sum": one["sum"]}


@turned.def_transpose
def _(ct, a, x):
    if isinstance(x, st.typing.Linear):
        return None, a["matrix"].T @ ct["out"] + ct["sum"]
    return {"matrix": ct["out"][:, None] * x}, None


@turned.def_vmap
def _(axis_size, in_batched, a, x):
    axes = ({"matrix": 0 if in_batched[0]["matrix"] else None}, 0 if in_batched[1] else None)
    out = st.vmap(lambda a, x: {"out": a["matrix"] @ x, "sum": x.sum()}, axes)(a, x)
    return out, {"out": True, "sum": True}


derived = st.primitive(lambda x, y: (snp.sin(x) * y, x + y), derive=("jvp", "transpose", "vmap"))
counted = st.primitive(lambda n, x: (n + 1, x * n), derive="vmap")

LAWS = [
    *[law(power, power, kind(3)) for kind in (f32, f64)],
    law(UserPrimitive, lambda x: power(x, n=4), f64(2, 2)),
    *[
        law(turned, lambda a, x: turned({"matrix": a}, x), kind(2, 3), kind(3))
        for kind in (f32, f64)
    ],
    law(derived, derived, f64(3), f64(3)),
    law(derived, st.jit(derived), f64(3), f64()),
    law(counted, counted, i32(2), f64(2)),
    law(
        power, lambda x: lax.scan(lambda c, _: (power(c), None), x, None, 2)[0], f64(2).within(0, 1)
    ),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


def test_a_law_that_a_rule_breaks():
    wrong = st.primitive(lambda x: x * 2)
    wrong.def_jvp(lambda p, t: (wrong(*p), wrong(*t)))
    wrong.def_transpose(lambda ct, x: (ct * 3,))
    with pytest.raises(AssertionError, match="not the adjoint"):
        law(wrong, wrong, f32(3)).check()
    with pytest.raises(AssertionError, match="does not use it"):
        law(wrong, snp.sin, f32(3)).check()


# What is recorded, and when the implementation is traced.


def test_it_is_one_operation_in_programs():
    program = st.make_graph(lambda x: power(power(x), n=2))(snp.ones(2))
    check(program)
    assert [e.primitive.name for e in program.equations] == ["power", "power"]
    assert "power a [n=3]" in str(program)
    assert [e.primitive.rules is power.rules for e in program.equations] == [True, True]


def test_at_rest_the_implementation_runs_and_sees_arrays():
    seen = []
    own = st.primitive(lambda x: seen.append(x.item()) or x)
    assert float(own(2.0)) == 2.0
    assert seen == [2.0]


def test_the_implementation_is_traced_once_for_types_and_parameters():
    traced = []
    own = st.primitive(lambda x, *, n: traced.append(n) or x * len(str(n)), derive="jvp")
    for _ in range(2):
        program = st.make_graph(lambda x: own(own(x, n=2), n=2))(snp.ones(2))
    one, other = program.equations
    assert one.primitive is other.primitive
    assert traced == [2]
    st.make_graph(lambda x: own(x, n=[3]))(snp.ones(2))  # not hashable
    assert traced == [2, [3]]


def test_with_a_rule_for_types_it_is_traced_when_it_is_compiled():
    traced = []
    own = st.primitive(lambda x: traced.append(1) or x * 2)
    own.def_infer(lambda x: x)
    own.def_jvp(lambda p, t: (own(*p), own(*t)))
    own.def_transpose(lambda ct, x: (own(ct),))
    f = st.jit(st.value_and_grad(lambda x: own(own(x)).sum()))
    st.make_graph(st.grad(lambda x: own(x).sum()))(snp.ones(2))
    assert not traced
    value, slope = f(snp.ones(2))
    assert traced
    assert (float(value), slope.tolist()) == (8.0, [4.0, 4.0])


def test_settings_of_the_call_hold_where_it_is_traced_later():
    own = st.primitive(lambda x: snp.zeros(2) + x)
    own.def_infer(lambda x: x)
    with st.enable_x64():
        program = st.make_graph(own)(snp.ones(2, "float64"))
    primitive = program.equations[0].primitive
    assert primitive.traced().out_types[0].dtype == np.float64
    assert primitive.traced() is primitive.traced()


def test_equal_applications_are_computed_once():
    program = st.make_graph(lambda x: power(x) + power(x), simplified=True)(snp.ones(2))
    assert [e.primitive.name for e in program.equations].count("power") == 1


def test_effects_of_the_implementation_are_kept():
    seen = []

    @st.primitive
    def noted(x):
        st.io_callback(lambda x: seen.append(float(x)), None, x)
        return x

    def f(x):
        noted(x)
        return x

    st.jit(f)(3.0)
    st.debug.effects_barrier()
    assert seen == [3.0]
    noted.def_infer(lambda x: x)
    with pytest.raises(TypeError, match="calls Python for an effect, and has a rule by def_infer"):
        st.jit(noted)(4.0)


def test_numpy_computes_it_through_a_callback():
    @st.primitive
    def ordered(x):
        return st.pure_callback(np.sort, x, x, vmap_method="expand_dims")

    assert st.jit(ordered)(snp.array([3.0, 1.0, 2.0])).tolist() == [1.0, 2.0, 3.0]


def test_what_it_holds_is_freed_with_it():
    own = st.primitive(lambda x: x + 1)
    st.jit(own)(1.0)
    gone = weakref.ref(own)
    del own
    st.clear_caches()
    gc.collect()
    assert gone() is None


# Rules.


@pytest.mark.parametrize("transform", [
    st.grad,
    lambda f: st.jit(st.grad(f)),
    lambda f: st.grad(st.jit(f)),
    lambda f: st.grad(st.checkpoint(f)),
    lambda f: lambda x: st.vmap(st.grad(f))(x[None])[0],
    lambda f: st.grad(lambda x: st.vmap(f)(x[None])[0]),
    st.jacfwd,
    lambda f: lambda x: st.linearize(f, x)[1](1.0),
])  # fmt: skip
def test_rules_are_used_in_every_order(transform):
    strange = st.primitive(lambda x: x * x)
    strange.def_jvp(lambda p, t: (strange(*p), 10 * t[0]))
    strange.def_vmap(lambda n, mapped, x: (strange(x), mapped[0]))
    assert float(transform(strange)(snp.array(3.0))) == 10.0


def test_zeros_that_are_known():
    seen = []
    own = st.primitive(lambda x, y: (x * y, y))

    def rule(primals, tangents):
        seen.append(tangents)
        (x, y), (dx, _) = primals, tangents
        return own(x, y), (dx * y, SymbolicZero((), np.dtype("float32")))

    own.def_jvp(rule, symbolic_zeros=True)
    assert [float(t) for t in st.jvp(lambda x: own(x, 3.0), (2.0,), (1.0,))[1]] == [3.0, 0.0]
    assert isinstance(seen[0][1], SymbolicZero)

    linear = st.primitive(lambda x: (x, x * 2), derive="jvp")
    linear.def_jvp(lambda p, t: (linear(*p), linear(*t)))
    linear.def_transpose(lambda ct, x: (seen.append(ct) or ct[1] * 2,), symbolic_zeros=True)
    assert float(st.grad(lambda x: linear(x)[1])(1.0)) == 2.0
    assert isinstance(seen[-1][0], SymbolicZero)


def test_only_what_is_asked_for_comes_back():
    program = st.linear_transpose(lambda x: turned({"matrix": snp.ones((2, 3))}, x), snp.ones(3))
    (back,) = program({"out": snp.array([1.0, 2.0]), "sum": 1.0})
    assert back.tolist() == [4.0, 4.0, 4.0]


@pytest.mark.parametrize(("use", "rule"), [
    (lambda f: st.jvp(f, (1.0,), (1.0,)), "jvp"),
    (lambda f: st.grad(f)(1.0), "jvp"),
    (lambda f: st.vmap(f)(snp.ones(2)), "vmap"),
    (lambda f: st.linear_transpose(f, 1.0)(1.0), "transpose"),
])  # fmt: skip
def test_missing_rules_are_refused_in_words(use, rule):
    own = st.primitive(lambda x: x + x)
    with pytest.raises((MissingRuleError, TypeError), match=rf"no rule for {rule}: .*def_{rule}.*"):
        use(own)
    use(st.primitive(lambda x: x + x, derive=rule))


# What does not fit.


def test_what_cannot_be_made():
    with pytest.raises(TypeError, match="primitive: expected a function, got int"):
        st.primitive(3)
    with pytest.raises(ValueError, match=r"derive must name some of 'jvp', .*got 'grad'"):
        st.primitive(snp.sin, derive="grad")
    with pytest.raises(TypeError, match=r"def_jvp of .* takes a function, got int"):
        st.primitive(lambda x: x).def_jvp(3)


def test_arguments_that_do_not_fit():
    with pytest.raises(TypeError, match="primitive: power: got an unexpected keyword"):
        power(1.0, m=2)
    with pytest.raises(TypeError, match="primitive: power: x must be an array"):
        power("a")


def test_traced_values_from_outside_are_refused():
    def f(x):
        return st.primitive(lambda y: x * y)(x)

    with pytest.raises(EscapedTracerError, match="a traced value from outside"):
        st.jit(f)(1.0)
    constant = snp.arange(3.0)
    own = st.primitive(lambda y: constant * y)
    assert st.jit(own)(2.0).tolist() == [0.0, 2.0, 4.0]


def test_an_implementation_that_needs_numbers():
    with pytest.raises(TracedValueError, match="the argument x"):
        st.jit(st.primitive(lambda x: x if x > 0 else -x))(1.0)


def test_results_that_do_not_fit():
    own = st.primitive(lambda x: x + x)
    own.def_infer(lambda x: st.ShapeDtypeStruct((7,), x.dtype))
    with pytest.raises(TypeError, match=r"must return what was inferred, of type float32\[7\]"):
        st.jit(own)(snp.ones(2))
    own.def_jvp(lambda p, t: own(*p))
    with pytest.raises(TypeError, match="the jvp rule of function must return a pair"):
        st.jvp(own, (1.0,), (1.0,))
    own.def_vmap(lambda n, mapped, x: x)
    with pytest.raises(TypeError, match="the vmap rule of function must return a pair"):
        st.vmap(own)(snp.ones(2))
    linear = st.primitive(lambda x: x + x)
    linear.def_jvp(lambda p, t: (linear(*p), linear(*t)))
    linear.def_transpose(lambda ct, x: ct)
    with pytest.raises(TypeError, match="the transpose rule of function must return a tuple of 1"):
        st.grad(lambda x: linear(x).sum())(snp.ones(2))


def test_methods():
    class Scale:
        by = 3.0

        @st.primitive
        def apply(self, x):
            return x * 3.0

    assert repr(Scale.apply) == "<primitive apply>"


@pytest.mark.parametrize("like", [st.ShapeDtypeStruct, np.zeros])
def test_a_type_without_a_word_of_weakness_is_none(like):
    f = st.primitive(lambda x: x * 2)
    f.def_infer(lambda x: {"a": like((2,), np.dtype("float32")), "b": x})
    program = st.make_graph(f)(2.0)
    assert [t.weak_type for t in program.out_types] == [False, True]
    assert [t.shape for t in program.out_types] == [(2,), ()]


def test_with_no_other_program_it_is_itself():
    (equation,) = st.make_graph(power)(2.0).equations
    primitive = equation.primitive
    assert primitive.with_programs(lambda program: program) is primitive
