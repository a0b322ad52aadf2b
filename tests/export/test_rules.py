"""Derivative rules of users in files: traced to an order, and refused beyond."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import ExportError, MissingRuleError, PerturbationError
from tests.export.artifacts import again


def sine(x):
    return snp.sin(x)


def tripled():
    """The sine, with three times its slope."""
    f = st.custom_jvp(sine)
    f.defjvp(lambda p, t: (f(*p), 3 * snp.cos(p[0]) * t[0]))
    return f


def tenfold():
    """A product, with ten times its slope by the first argument, and none by the second."""
    f = st.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1] * 10, None))
    return f


def test_a_jvp_rule_is_kept(tmp_path):
    f = tripled()
    loaded = again(st.export.program(lambda x: f(x) * 2, 1.0), tmp_path)
    assert float(st.grad(loaded)(0.5)) == float(st.grad(lambda x: f(x) * 2)(0.5))
    assert float(st.jvp(loaded, (0.0,), (1.0,))[1]) == 6.0
    np.testing.assert_array_equal(st.vmap(st.grad(loaded))(snp.zeros(3)), [6.0, 6.0, 6.0])
    np.testing.assert_array_equal(st.jit(st.jacfwd(st.vmap(loaded)))(snp.zeros(2)), 6 * np.eye(2))


def test_derivatives_beyond_those_asked_for_are_refused(tmp_path):
    f = tripled()
    loaded = again(st.export.program(f, 1.0), tmp_path)
    with pytest.raises(MissingRuleError, match=r"with fewer derivatives than are taken: .*=2"):
        st.grad(st.grad(loaded))(0.5)
    twice = again(st.export.program(f, 1.0, derivatives=2), tmp_path)
    second = st.grad(st.grad(f))(0.5)
    assert float(st.grad(st.grad(twice))(0.5)) == float(second)
    none = again(st.export.program(f, 1.0, derivatives=0), tmp_path)
    assert float(none(0.5)) == float(f(0.5))
    with pytest.raises(MissingRuleError, match="has derivative rules of its own"):
        st.grad(none)(0.5)


def test_a_vjp_rule_is_kept(tmp_path):
    f = tenfold()
    loaded = again(st.export.program(f, 1.0, 3.0), tmp_path)
    assert [float(g) for g in st.grad(loaded, (0, 1))(2.0, 3.0)] == [30.0, 0.0]
    slopes = st.vmap(st.grad(loaded))(snp.ones(2), snp.array([1.0, 2.0]))
    np.testing.assert_array_equal(slopes, [10.0, 20.0])
    with pytest.raises(MissingRuleError, match="no forward derivative"):
        st.jvp(loaded, (1.0, 1.0), (1.0, 1.0))


def test_a_rule_may_ignore_captured_values(tmp_path):
    """The function takes a value from outside, by which the rule gives no derivative."""

    def outer(x, scale):
        f = st.custom_jvp(lambda x: snp.sin(x) * scale)
        f.defjvp(lambda p, t: (f(*p), 7.0 * t[0]))
        return f(x)

    loaded = again(st.export.program(outer, 1.0, 2.0), tmp_path)
    assert float(st.grad(loaded)(1.0, 2.0)) == 7.0
    with pytest.raises(PerturbationError, match="a value that it takes from outside"):
        st.grad(loaded, 1)(1.0, 2.0)


def test_a_linear_call_keeps_its_transpose(tmp_path):
    def f(x, by):
        return st.lax.linear_call(lambda r, x: x / r, lambda r, ct: 5 * ct / r, by, x)

    loaded = again(st.export.program(f, 3.0, 4.0), tmp_path)
    assert float(st.grad(loaded)(3.0, 4.0)) == 1.25


def test_a_rule_that_cannot_be_traced_is_refused_when_it_is_used(tmp_path):
    f = st.custom_jvp(sine)
    f.defjvp(lambda p, t: (f(*p), t[0] * float(p[0])))
    loaded = again(st.export.program(f, 1.0), tmp_path)
    assert float(loaded(0.0)) == 0.0
    with pytest.raises(MissingRuleError, match="could not be traced when it was exported: float"):
        st.grad(loaded)(1.0)


def test_a_vmap_rule_is_refused_when_it_is_used(tmp_path):
    f = st.custom_vmap(sine)
    f.def_vmap(lambda size, mapped, x: (x * 0, True))
    loaded = again(st.export.program(f, 1.0), tmp_path)
    assert float(st.grad(loaded)(0.0)) == 1.0
    with pytest.raises(MissingRuleError, match="export the mapped function"):
        st.vmap(loaded)(snp.ones(3))


def test_operations_of_ones_own(tmp_path):
    plain = st.primitive(sine, derive=("jvp", "vmap"))
    loaded = again(st.export.program(plain, 1.0), tmp_path)
    assert float(st.grad(loaded)(0.0)) == 1.0
    ruled = st.primitive(sine, derive="vmap")
    ruled.def_jvp(lambda p, t: (ruled(*p), 3 * t[0]))
    loaded = again(st.export.program(ruled, 1.0), tmp_path)
    assert float(st.grad(loaded)(0.0)) == 3.0
    mapped = st.primitive(sine, derive="jvp")
    mapped.def_vmap(lambda size, over, x: (mapped(x), over[0]))
    with pytest.raises(ExportError, match="has a rule for vmap that is a Python function"):
        st.export.program(mapped, 1.0)


def test_rules_of_a_loaded_program_are_written_again(tmp_path):
    f = tripled()
    once = again(st.export.program(f, 1.0), tmp_path)
    twice = again(st.export.program(once, 1.0), tmp_path)
    assert float(st.grad(twice)(0.0)) == 3.0
