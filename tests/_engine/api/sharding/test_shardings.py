"""``jit`` with shardings of arguments and results."""

import contextlib

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices

A = np.arange(32.0, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def mesh():
    return st.make_mesh((4, 2), ("x", "y"))


def test_arguments_and_results(mesh):
    rows, whole = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P())

    def f(tree, scale):
        return {"sum": tree["a"].sum(0) * scale, "all": tree["a"] * scale}

    g = st.jit(f, in_shardings=({"a": rows}, whole), out_shardings={"sum": whole, "all": rows})
    out = g({"a": A}, 2.0)
    assert (out["sum"].sharding, out["all"].sharding) == (whole, rows)
    np.testing.assert_allclose(out["sum"], 2 * A.sum(0))
    np.testing.assert_array_equal(out["all"], 2 * A)
    again = g({"a": st.device_put(A, rows)}, 2.0)
    np.testing.assert_array_equal(again["all"], out["all"])


def test_one_for_all_and_the_mesh_in_use(mesh):
    with st.sharding.set_mesh(mesh):
        f = st.jit(lambda a, b: (a + b, a.T), in_shardings=P("x"), out_shardings=(P("x"), None))
        total, turned = f(A, A)
    assert total.sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_array_equal(turned, A.T)


def test_none_follows_arguments(mesh):
    rows = NamedSharding(mesh, P("x"))
    f = st.jit(lambda a, b: a + b, in_shardings=(None, rows))
    assert f(st.device_put(A, NamedSharding(mesh, P("y"))), A).committed
    np.testing.assert_array_equal(f(A, A), 2 * A)


def test_a_sharding_other_than_asked_for(mesh):
    f = st.jit(lambda a: a, in_shardings=NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match=r"a, float32\[8,4\], has the sharding .*device_put\(a"):
        f(st.device_put(A, NamedSharding(mesh, P("y"))))
    with pytest.raises(ValueError, match=r"a, float32.*cannot be split evenly: axis 0 .* size 6"):
        f(np.ones(6, np.float32))
    g = st.jit(lambda a: a, out_shardings=NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match=r"the result, float32.*cannot be split evenly"):
        g(np.ones(6, np.float32))
    with pytest.raises(TypeError, match="in_shardings must be a sharding"):
        st.jit(lambda a: a, in_shardings="x")(A)
    with pytest.raises(ValueError, match="no mesh is in use"):
        st.jit(lambda a: a, in_shardings=P("x"))(A)


def test_donation_keeps_where_it_was(mesh):
    rows = NamedSharding(mesh, P("x"))
    f = st.jit(lambda state, b: state + b.sum(), donate_argnums=0)
    state = st.device_put(A, rows)
    out = f(state, A)
    assert state.is_deleted() and out.sharding == rows
    np.testing.assert_array_equal(out, A + A.sum())
    with pytest.raises(ValueError, match="one array was passed"):
        f(out, out)
    assert not out.is_deleted()


def test_memory_is_taken_for_results_that_are_where_it_was(mesh):
    rows, columns = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x"))
    for where, is_taken in [(rows, True), (columns, False), (None, True)]:
        f = st.jit(lambda a: a + 1, donate_argnums=0, in_shardings=rows, out_shardings=where)
        a = st.device_put(np.ones((8, 8), np.float32), rows)
        with contextlib.nullcontext() if is_taken else pytest.warns(UserWarning, match="donated"):
            out = f(a)
        assert a.is_deleted() is is_taken
        np.testing.assert_array_equal(out, np.full((8, 8), 2))


def test_static_arguments_have_no_sharding(mesh):
    rows = NamedSharding(mesh, P("x"))
    f = st.jit(lambda n, a: a * n, static_argnums=0, in_shardings=(rows,))
    assert f(3, A).sharding == rows
    with pytest.raises(ValueError, match=r"a, .* has the sharding"):
        f(3, st.device_put(A, NamedSharding(mesh, P("y"))))


def test_ahead_of_time(mesh):
    rows = NamedSharding(mesh, P("x"))
    spec = st.ShapeDtypeStruct(A.shape, A.dtype, sharding=rows)
    compiled = st.jit(lambda a: a * 2).lower(spec).compile()
    out = compiled(st.device_put(A, rows))
    assert out.sharding == rows and "num_partitions=8" in compiled.as_text()
    np.testing.assert_array_equal(out, compiled(A))
    with pytest.raises(TypeError, match="compiled for a with the sharding"):
        compiled(st.device_put(A, NamedSharding(mesh, P("y"))))
    assert compiled.memory_analysis().argument_size_in_bytes == A.nbytes // 4


def test_arrays_captured_and_large_constants(mesh):
    rows = NamedSharding(mesh, P("x"))
    captured, table = st.device_put(A, rows), snp.arange(4000.0)
    f = st.jit(lambda a: a + captured + table[:4])
    np.testing.assert_array_equal(f(st.device_put(A, rows)), 2 * A + np.arange(4))


def test_a_constraint_alone_says_the_devices(mesh):
    rows = NamedSharding(mesh, P("x"))
    f = st.jit(lambda a: st.lax.with_sharding_constraint(a * 2, rows))
    out = f(A)
    assert out.sharding == rows
    np.testing.assert_array_equal(out, 2 * A)
    assert st.lax.with_sharding_constraint(A, rows).sharding == rows  # outside of programs too
    g = st.grad(lambda a: (st.lax.with_sharding_constraint(a, rows) ** 2).sum())
    np.testing.assert_array_equal(st.jit(g)(A), 2 * A)


def test_callbacks_are_refused(mesh):
    def f(a):
        return st.pure_callback(np.sin, st.ShapeDtypeStruct((8, 4), "float32"), a)

    with pytest.raises(NotImplementedError, match="cannot call Python"):
        st.jit(f)(st.device_put(A, NamedSharding(mesh, P("x"))))


def test_two_meshes_of_the_same_devices(mesh):
    flat = st.make_mesh((8,), ("z",))
    a = st.device_put(A, NamedSharding(mesh, P("x", "y")))
    b = st.device_put(A.T @ A, NamedSharding(st.make_mesh((2, 4), ("u", "v")), P("u", "v")))
    c = st.device_put(A, NamedSharding(flat, P("z")))
    np.testing.assert_allclose(st.jit(lambda a, b, c: a @ b + c)(a, b, c), A @ (A.T @ A) + A)
    np.testing.assert_array_equal(a + c, 2 * A)


def test_calls_are_found_by_shardings(mesh):
    f = st.jit(lambda x, scale: {"y": x * scale})
    rows = NamedSharding(mesh, P("x"))
    for spec in (P("x"), P(None, "y"), P("x"), P(), P("x")):
        for _ in range(3):
            x = st.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, spec))
            out = f(x, np.float32(2))["y"]
            assert out.sharding.is_equivalent_to(NamedSharding(mesh, spec), 2)
            np.testing.assert_array_equal(out, np.full((8, 8), 2))
    x, scale = st.device_put(np.ones((8, 8), np.float32), rows), snp.float32(3)
    assert f._fingerprint((x, scale), {}) is not None
    for _ in range(4):
        np.testing.assert_array_equal(f(x, scale)["y"], np.full((8, 8), 3))
    x.delete()
    with pytest.raises(st.errors.DonatedArrayError, match="deleted"):
        f(x, scale)


def test_no_two_shardings_are_taken_for_each_other(mesh):
    f = st.jit(lambda x: x + 1)
    for i in range(60):  # shardings come and go, and with them their addresses
        axes = [("x", None), (None, "x"), ("y", None), (None, "y"), ("x", "y"), (("x", "y"), None)]
        sharding = NamedSharding(st.make_mesh((4, 2), ("x", "y")), P(*axes[i % 6]))
        out = f(st.device_put(np.full((8, 8), i, np.float32), sharding))
        assert out.sharding.is_equivalent_to(sharding, 2)
        np.testing.assert_array_equal(out, np.full((8, 8), i + 1))


@pytest.mark.parametrize("small", [True, False])
def test_captured_arrays_say_where_it_runs(mesh, small):
    rows = NamedSharding(mesh, P("x"))
    captured = st.device_put(A, rows)
    with st.config(interpret_small=small):
        f = st.jit(lambda x: x + captured)
        for _ in range(3):
            out = f(snp.ones((8, 4)))
            np.testing.assert_array_equal(out, A + 1)
            assert out.committed and out.devices() == set(st.devices())
        np.testing.assert_array_equal(f.lower(snp.ones((8, 4))).compile()(snp.ones((8, 4))), A + 1)
