"""Primitives of libraries: every rule, when each is looked up, and what is missing."""

import gc
import weakref

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.avals import ShapedArray
from stretto.compat.jax.jaxprs import own
from stretto.compat.jax.jaxprs.making import make_jaxpr
from stretto.compat.jax.jaxprs.own import operation_of
from stretto.compat.jax.jaxprs.primitive import Primitive
from stretto.laws import f32, law


def sine():
    """sin(k x), by its rules."""
    p = Primitive("sine")
    p.def_impl(lambda x, *, k: snp.sin(k * x))
    p.def_abstract_eval(lambda x, *, k: ShapedArray(x.shape, x.dtype))
    own.defjvp(p, lambda dx, x, *, k: k * snp.cos(k * x) * dx)
    own.defvectorized(p)
    return p


def pair():
    """(2 x, x + y), linear in both, with lists of results."""
    p = Primitive("pair")
    p.multiple_results = True
    p.def_impl(lambda x, y: [2 * x, x + y])
    p.def_abstract_eval(lambda x, y: [x, x])

    def transpose(cts, x, y):
        first, second = map(own.instantiate_zeros, cts)
        back = [2 * first + second, second]
        return [b if own.is_undefined_primal(a) else None for a, b in zip((x, y), back)]

    own.deflinear2(p, transpose)

    def batch(args, axes):
        size = next(x.shape[a] for x, a in zip(args, axes) if a is not None)
        return p.bind(*[own.bdim_at_front(x, a, size) for x, a in zip(args, axes)]), (0, 0)

    own.primitive_batchers[p] = batch
    return p


def test_laws():
    p = sine()
    law(operation_of(p), lambda x: p.bind(x, k=2.0), f32(3)).check()
    q = pair()
    law(operation_of(q), lambda x, y: snp.stack(q.bind(x, y)), f32(2), f32(2)).check()


def test_it_is_itself_in_jaxprs():
    p = sine()
    (e,) = make_jaxpr(lambda x: p.bind(x, k=[2.0]))(snp.ones(2)).eqns
    assert e.primitive is p
    assert e.params == {"k": [2.0]}
    assert e.primitive.bind(snp.zeros(2), k=2.0).tolist() == [0.0, 0.0]


def test_results_are_lists_if_there_may_be_several():
    out = pair().bind(1.0, 2.0)
    assert isinstance(out, list)
    assert [float(x) for x in out] == [2.0, 3.0]


def test_the_implementation_sees_arrays_and_the_rule_to_compile_takes_its_place():
    p = Primitive("chosen")
    p.def_impl(lambda x: snp.array(x.item()))
    p.def_abstract_eval(lambda x: x)
    own.register_lowering(p, own.lower_fun(lambda x: x * 10, multiple_results=False))
    assert float(p.bind(1.0)) == 1.0
    assert float(st.jit(p.bind)(1.0)) == 10.0


def test_rules_may_come_later():
    p = Primitive("late")
    p.def_impl(lambda x: x * 1)
    f = st.jit(p.bind)
    assert float(f(1.0)) == 1.0
    with pytest.raises(NotImplementedError, match="late has no rule for jvp: give one in"):
        st.grad(f)(1.0)
    with pytest.raises(NotImplementedError, match="primitive late has no rule for vmap: give one"):
        st.vmap(p.bind)(snp.ones(2))
    own.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), p.bind(*tangents))
    with pytest.raises(NotImplementedError, match="late has no rule for transpose: give one in"):
        st.grad(f)(1.0)
    own.primitive_transposes[p] = lambda ct, x: [ct * 7]
    assert float(st.grad(f)(1.0)) == 7.0


def test_zeros():
    seen = []
    p = Primitive("zeros")
    p.multiple_results = True
    p.def_impl(lambda x, n: [x, n])
    p.def_abstract_eval(lambda x, n: [x, n])

    def jvp(primals, tangents):
        seen.append([type(t) for t in tangents])
        return p.bind(*primals), [tangents[0], own.Zero.from_primal_value(primals[1])]

    own.primitive_jvps[p] = jvp
    assert float(st.grad(lambda x: p.bind(x, 3)[0])(1.0)) == 1.0
    assert seen[0][1] is own.Zero
    q = Primitive("all zero")
    q.def_impl(lambda x: x)
    own.primitive_jvps[q] = lambda p, t: (q.bind(*p), own.Zero.from_primal_value(p[0]))
    assert float(st.grad(lambda x: q.bind(x) + x)(1.0)) == 1.0
    own.primitive_jvps[q] = lambda p, t: (q.bind(*p), q.bind(*t))
    own.primitive_transposes[q] = lambda ct, x: own.Zero  # the class itself
    assert float(st.grad(lambda x: q.bind(x) + x)(1.0)) == 1.0


def test_a_rule_may_apply_the_primitive_to_tangents_with_other_results():
    """As solvers do, whose status is no array of tangents."""
    p = Primitive("solve")
    p.multiple_results = True
    p.def_impl(lambda a, b: [b / a, snp.array(0)])
    p.def_abstract_eval(lambda a, b: [b, ShapedArray((), "int32")])

    def jvp(primals, tangents):
        (a, b), (da, db) = primals, map(own.instantiate_zeros, tangents)
        x, status = p.bind(a, b)
        dx, _ = p.bind(a, db - da * x)
        return [x, status], [dx, own.Zero.from_primal_value(status)]

    own.primitive_jvps[p] = jvp
    own.primitive_transposes[p] = lambda cts, a, b: [None, p.bind(a, cts[0])[0]]
    f = lambda a, b: p.bind(a, b)[0]
    slopes = st.jit(st.grad(f, (0, 1)))(2.0, 3.0)
    assert [float(s) for s in slopes] == [-0.75, 0.5]
    assert float(st.grad(st.grad(f))(2.0, 3.0)) == pytest.approx(0.75)


def test_without_a_rule_for_types_the_implementation_is_traced():
    p = Primitive("traced")
    p.def_impl(lambda x: x.sum())
    assert st.eval_shape(p.bind, snp.ones(3)).shape == ()
    with pytest.raises(NotImplementedError, match="empty has no implementation"):
        Primitive("empty").bind(1.0)
    with pytest.raises(NotImplementedError, match="empty has no rule for abstract values"):
        Primitive("empty").abstract_eval()


def test_effects_and_weak_types():
    p = Primitive("with effects")
    p.def_impl(lambda x: x * 1)
    p.def_effectful_abstract_eval(lambda x: (x, {"written"}))
    assert p.abstract_eval(ShapedArray((), "float32"))[1] == {"written"}
    assert st.eval_shape(p.bind, 1.0).weak_type
    assert not st.eval_shape(p.bind, np.float32(1)).weak_type


def test_parameters_are_not_kept():
    class Parameter:
        pass

    p = Primitive("keeps nothing")
    p.def_impl(lambda x, *, k: x)

    def trace():
        parameter = Parameter()
        st.make_graph(lambda x: p.bind(x, k=parameter))(1.0)
        return weakref.ref(parameter)

    gone = trace()
    gc.collect()
    assert gone() is None


def test_operands_that_are_no_arrays():
    with pytest.raises(TypeError, match="sine: operand 0 must be an array or a number"):
        sine().bind("a", k=1)
