"""References as arguments of jitted functions, and taken from outside by them."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_one_trace_serves_all_references_of_a_type():
    traced = []

    @st.jit
    def add(ref, x):
        traced.append(ref.shape)
        ref[0] += x
        return ref[...].sum()

    a, b, c = st.new_ref(snp.zeros(3)), st.new_ref(snp.ones(3)), st.new_ref(snp.zeros(2))
    assert [float(add(r, 1.0)) for r in (a, b, a, c)] == [1.0, 4.0, 2.0, 1.0]
    np.testing.assert_array_equal(a[...], [2, 0, 0])
    np.testing.assert_array_equal(b[...], [2, 1, 1])
    assert traced == [(3,), (2,)]
    assert float(st.jit(lambda x, i: x[...])(snp.ones(()), 0)) == 1.0


def test_arrays_and_references_of_one_type_are_told_apart():
    f = st.jit(lambda x: isinstance(x, st.typing.Ref))
    assert bool(f(st.new_ref(1.0))) and not bool(f(snp.array(1.0)))


def test_in_trees_with_names_and_static_arguments():
    @st.jit(static_argnames="n")
    def f(state, n, *, scale):
        state["count"][...] += n
        return [state["x"] * scale[...]]

    count, scale = st.new_ref(0), st.new_ref(2.0)
    for _ in range(2):
        (y,) = f({"count": count, "x": 3.0}, 4, scale=scale)
        scale[...] += 1
    assert (int(count[...]), float(y)) == (8, 9.0)


def test_compiled_and_interpreted_give_the_same():
    ref = st.new_ref(snp.zeros(300))

    def f(x):
        for _ in range(20):
            ref[...] = snp.sin(ref[...] + x)
        return ref[...].sum()

    totals = []
    for small in (True, False):
        ref[...] = 0.0
        with st.config(interpret_small=small):
            run = st.jit(f)
            totals.append([float(run(1.0)) for _ in range(3)])
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-6)


def test_calls_that_cannot_be_right_are_refused():
    a, b = st.new_ref(1.0), st.new_ref(1.0)
    two = st.jit(lambda x, y: (x.set(2.0), y.set(3.0)))
    with pytest.raises(st.errors.RefError, match="passed as x and as y"):
        two(a, a)
    both = st.jit(lambda x: (x.set(2.0), a.set(3.0)))
    both(b)
    assert (float(a[...]), float(b[...])) == (3.0, 2.0)
    with pytest.raises(st.errors.RefError, match="passed as an argument and taken from outside"):
        both(a)
    with pytest.raises(st.errors.RefError, match="cannot be compiled beforehand"):
        st.jit(lambda: a[...]).lower()
    with pytest.raises(st.errors.RefError, match="with dynamic_axes it cannot use references"):
        st.jit(lambda x: x * a[...], dynamic_axes=({0: "n"},))(snp.ones(3))


def test_donated_references_keep_what_they_hold():
    ref = st.new_ref(snp.ones(3))
    x = snp.arange(3.0)
    add = st.jit(lambda r, x: (r.addupdate(x), r[...] * 2)[1], donate_argnums=(0, 1))
    np.testing.assert_array_equal(add(ref, x), [2, 4, 6])
    np.testing.assert_array_equal(ref[...], [1, 2, 3])


def test_inside_of_other_transformations():
    ref = st.new_ref(0.0)
    count = st.jit(lambda x: (ref.addupdate(1.0), x * x)[1])
    assert float(st.grad(count)(3.0)) == 6.0
    np.testing.assert_array_equal(st.vmap(count)(snp.arange(3.0)), [0, 1, 4])
    st.lax.fori_loop(0, 3, lambda i, x: count(x), 1.0)
    assert float(ref[...]) == 5.0
    each = st.new_ref(snp.zeros(3))
    st.jit(st.vmap(lambda r, x: r.set(x * x)))(each, snp.arange(3.0))
    np.testing.assert_array_equal(each[...], [0, 1, 4])


def test_under_settings_that_change_what_runs():
    ref = st.new_ref(1.0)
    f = st.jit(ref.swap)
    with st.config(debug_nans=True):
        assert float(f(2.0)) == 1.0
        with pytest.raises(FloatingPointError):
            st.jit(lambda x: (ref.set(x / x), x)[1])(0.0)
    with st.disable_jit():
        assert float(f(3.0)) == 2.0
    with st.default_device(st.devices()[0]):
        assert float(f(4.0)) == 3.0
    assert float(ref[...]) == 4.0


def test_programs_show_writes_as_results():
    ref = st.new_ref(0.0)
    program = st.make_graph(lambda r, x: r.set(x * 2))(ref, snp.ones(()))
    assert str(program).splitlines() == [
        "{ function(a:f32[], b:f32[])",
        "  c:f32[] = mul b 2.0",
        "  return c }",
    ]
    shape = st.eval_shape(lambda r, x: (r.set(x), x)[1], ref, snp.ones(()))
    assert shape == st.ShapeDtypeStruct((), "float32")
    assert float(ref[...]) == 0.0


def test_vmap_over_references():
    xs = st.new_ref(snp.arange(6.0).reshape(2, 3))
    total = st.new_ref(0.0)

    def f(x, t, y):
        assert x.shape == (2,)
        x[0] = x[1] + y + t[...]
        return x[...].sum()

    np.testing.assert_array_equal(st.vmap(f, (1, None, 0))(xs, total, snp.ones(3)), [7, 9, 11])
    np.testing.assert_array_equal(xs[...], [[4, 5, 6], [3, 4, 5]])
    with pytest.raises(st.errors.RefError, match="passed as x and as t"):
        st.vmap(f)(xs, xs, snp.ones(2))
    chunked = st.vmap(lambda x: x.set(1.0), chunk_size=2)
    chunked(xs)
    np.testing.assert_array_equal(xs[...], np.ones((2, 3)))


def test_shard_map_over_references():
    mesh = st.make_mesh((1,), ("i",))
    ref = st.new_ref(snp.arange(4.0))
    add = lambda r: r.addupdate(st.lax.axis_index("i") + 1.0)
    st.shard_map(add, mesh=mesh, in_specs=st.P("i"), out_specs=None)(ref)
    np.testing.assert_array_equal(ref[...], [1, 2, 3, 4])
