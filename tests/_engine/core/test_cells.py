"""What traced bodies see of references made outside, and how writes get out."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.cells import Cell, collecting


def test_writes_get_out_one_body_at_a_time():
    ref = st.new_ref(0.0)

    @st.jit
    def outer(x):
        @st.jit
        def inner(y):
            ref[...] += y
            return ref[...]

        first = inner(x)
        return first, inner(2 * x), ref[...]

    assert [float(v) for v in outer(1.0)] == [1.0, 3.0, 3.0]
    assert [float(v) for v in outer(1.0)] == [4.0, 6.0, 6.0]
    assert float(ref[...]) == 6.0


def test_a_body_that_only_reads_gets_the_present_value_at_each_call():
    ref = st.new_ref(1.0)
    f = st.jit(lambda x: x * ref[...])
    assert float(f(2.0)) == 2.0
    ref[...] = 5.0
    assert float(f(2.0)) == 10.0
    g = st.jit(lambda x: st.lax.cond(x > 0, lambda: ref[...], lambda: x))
    assert float(g(1.0)) == 5.0
    ref[...] = 6.0
    assert float(g(1.0)) == 6.0


def test_references_made_inside_take_any_value():
    def f(x):
        ref = st.new_ref(snp.zeros(()))
        ref[...] = snp.sin(x)
        ref[...] *= ref[...]
        return ref[...]

    pure = lambda x: snp.sin(x) ** 2
    xs = snp.linspace(-1, 1, 5)
    for wrap in (st.grad, st.vmap, lambda f: st.vmap(st.grad(f)), lambda f: st.jit(st.grad(f))):
        args = xs if "vmap" in wrap(f).__name__ or wrap is st.vmap else xs[0]
        np.testing.assert_allclose(wrap(f)(args), wrap(pure)(args), rtol=1e-6)
    tangent = st.jvp(f, (0.3,), (1.0,))[1]
    np.testing.assert_allclose(tangent, st.jvp(pure, (0.3,), (1.0,))[1], rtol=1e-6)


def test_what_a_derivative_or_an_example_has_does_not_get_out():
    ref = st.new_ref(0.0)

    def f(x):
        ref[...] = x
        return x

    with pytest.raises(st.errors.RefError, match=r"differentiated there.*stop_gradient"):
        st.grad(f)(1.0)
    with pytest.raises(st.errors.RefError, match="differentiated there"):
        st.jvp(f, (1.0,), (1.0,))
    with pytest.raises(st.errors.RefError, match="differentiated there"):
        st.grad(st.jit(f))(1.0)
    with pytest.raises(st.errors.RefError, match=r"mapped there.*mapped axis"):
        st.vmap(f)(snp.ones(3))
    with pytest.raises(st.errors.RefError, match="mapped there"):
        st.vmap(st.jit(f))(snp.ones(3))
    assert float(ref[...]) == 0.0


def test_values_that_are_the_same_for_all_get_out():
    ref = st.new_ref(0.0)

    def f(x):
        ref[...] += 1.0
        return x * ref[...]

    assert float(st.grad(f)(1.0)) == 1.0
    np.testing.assert_array_equal(st.vmap(f)(snp.ones(3)), [2.0] * 3)
    stopped = lambda x: (ref.set(st.lax.stop_gradient(x)), x)[1]
    assert float(st.grad(stopped)(7.0)) == 1.0
    assert float(ref[...]) == 7.0


def test_a_reference_does_not_outlive_its_trace():
    kept = []

    def f(x):
        kept.append(st.new_ref(x))
        return x

    st.jit(f)(1.0)
    for use in (lambda r: r[...], lambda r: r.set(2.0)):
        with pytest.raises(st.errors.EscapedTracerError, match=r"outlived .* f was transformed"):
            use(kept[0])
    st.grad(f)(1.0)
    with pytest.raises(st.errors.EscapedTracerError, match="outlived"):
        kept[1].get()
    assert repr(kept[1]) == "<Ref of float32[]>"


def test_programs_that_are_kept_use_none_from_outside():
    ref = st.new_ref(2.0)
    f = st.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (f(*p), ref[...] * t[0]))
    assert float(st.jvp(f, (3.0,), (1.0,))[1]) == 2.0
    with pytest.raises(st.errors.RefError, match="traced once for all calls"):
        st.grad(st.jit(f))(3.0)
    scaled = st.primitive(lambda x: x * ref[...])
    with pytest.raises(st.errors.RefError, match="traced once for all calls"):
        st.jit(scaled)(1.0)


def test_writes_that_nobody_gives_back_are_refused():
    ref = st.new_ref(2.0)

    def write(x):
        ref[...] = x * 1
        return x

    doubled = st.custom_vjp(write)
    doubled.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    assert float(doubled(3.0)) == 3.0  # at rest it is a call of Python
    with pytest.raises(st.errors.RefError, match="from which no write gets out"):
        st.jit(doubled)(3.0)
    with pytest.raises(st.errors.RefError, match="from which no write gets out"):
        st.lax.while_loop(lambda x: write(x) < 3, lambda x: x + 1, 0.0)


def test_what_fails_changes_nothing():
    ref = st.new_ref(1.0)

    @st.jit
    def f(x):
        ref[...] = 2.0
        raise KeyError(x)

    with pytest.raises(KeyError):
        f(1.0)
    assert float(ref[...]) == 1.0


def test_an_inner_reference_is_none_for_rules_outside():
    ref = st.custom_vjp(lambda r, x: x)
    ref.defvjp(lambda r, x: (x, r), lambda r, ct: (r.set(ct), (None, ct))[1])

    def f(x):
        inner = st.new_ref(0.0)
        return ref(inner, x * x)

    with pytest.raises(st.errors.EscapedTracerError, match="a reference of type"):
        st.grad(st.jit(f))(3.0)


def test_compile_time_blocks_see_what_was_written():
    ref = st.new_ref(1.0)

    @st.jit
    def f(x):
        ref[...] = x
        with st.ensure_compile_time_eval():
            return ref[...] + 1

    assert float(f(4.0)) == 5.0


def test_messages_name_the_function():
    ref = st.new_ref(0)
    with pytest.raises(st.errors.RefError) as caught:
        st.vmap(ref.set)(snp.arange(2))
    here = re.escape(__file__)
    assert re.search(rf"while .* was transformed for {here}:\d+", str(caught.value))


def test_a_trial_finds_what_a_body_writes():
    """Each once, in the order of the first writes; the writes themselves are lost."""
    first, second, third = (Cell(snp.ones(2) * k) for k in range(3))

    def body(x):
        second.write(x)
        first.write(third.read())
        second.write(x + 1)
        return x

    found = [third]
    for _ in range(2):
        st.make_graph(collecting(body, found))(snp.ones(2))
        assert found == [third, second, first]
    assert [cell.read().tolist() for cell in (first, second)] == [[0, 0], [1, 1]]
