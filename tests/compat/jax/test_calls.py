"""Transformations with JAX's parameters."""

import copy
import functools
import gc
import pickle
import weakref

import numpy as np
import pytest

import stretto
import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import calls
from stretto.compat.jax.calls import custom_jvp, custom_vjp, jit
from tests.compat.jax.running import prints


def test_shapes_of_keys():
    made = calls.eval_shape(lambda seed: (st.random.key(seed), snp.ones(2)), 0)
    assert made[0] == st.ShapeDtypeStruct((), st.random.key(0).dtype)
    assert made[1].shape == (2,)
    again = calls.eval_shape(lambda key: st.random.split(key, 3), made[0])
    assert (again.shape, again.dtype) == ((3,), made[0].dtype)


def test_results_that_are_shapes_already():
    scalar = st.ShapeDtypeStruct((), "float32")
    out = calls.eval_shape(lambda x: {"known": scalar, "traced": x + 1}, 2)
    assert out["known"] is scalar
    assert out["traced"].dtype == "int32"


def test_decorators_with_options():
    assert calls.jit(static_argnums=1)(lambda x, n: x * n)(2.0, 3) == 6
    assert calls.jit(lambda x: x + 1, backend="cpu")(1.0) == 2
    assert calls.checkpoint(prevent_cse=False)(lambda x: x + 1)(1.0) == 2
    assert calls.named_call(name="f")(lambda x: x + 1)(1.0) == 2
    assert calls.pmap(axis_name="i")(lambda x: x + 1)(snp.ones(1))[0] == 2
    assert calls.pmap(lambda x, y: x + y)(snp.ones(1), y=snp.ones(1))[0] == 2


def test_results_of_pmap_on_the_default_device_alone_are_plain_arrays():
    mapped = calls.pmap(lambda x: (x + 1, st.lax.psum(x, "i")), axis_name="i")
    out = mapped(snp.ones((1, 2)))
    assert [type(x) for x in out] == [type(snp.ones(1))] * 2
    assert [x.tolist() for x in out] == [[[2, 2]], [[1, 1]]]
    assert mapped.lower(snp.ones((1, 2))).out_tree == st.tree.structure((0, 0))
    traced = st.vmap(calls.pmap(lambda x: x * 2))(snp.ones((3, 1)))
    assert traced.tolist() == [[2]] * 3


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match=r"jax\.jit: a function is compiled for where"):
        calls.jit(lambda x: x, backend="tpu")
    with pytest.raises(NotImplementedError, match="abstracted_axes"):
        calls.jit(lambda x: x, abstracted_axes={0: "n"})
    with pytest.raises(NotImplementedError, match="static_argnums in place of concrete"):
        calls.checkpoint(lambda x: x, concrete=True)
    with pytest.raises(RuntimeError, match="Unknown backend"):
        calls.devices("tpu")


def test_values_on_the_host():
    key = st.random.key(0)
    array, same = calls.device_get((snp.ones(2), key))
    assert type(array) is np.ndarray and same is key
    assert st.jit(lambda x: calls.device_get(x) + 1)(snp.ones(2)).tolist() == [2, 2]
    assert calls.make_mesh((1,), ("i",), axis_types=None).shape == {"i": 1}


def test_places_of_one_device():
    (device,) = st.devices()[:1]
    for place in (device, st.device_put(1.0, device).sharding):
        held = lambda x, place=place: calls.with_sharding_constraint(x, place) + 1
        assert held(snp.ones(2)).tolist() == st.jit(held)(snp.ones(2)).tolist() == [2, 2]
    split = st.sharding.NamedSharding(st.make_mesh((1,), ("data",)), st.P("data"))
    assert calls.with_sharding_constraint(snp.ones(2), split).tolist() == [1, 1]


def test_the_device_of_a_compiled_function():
    assert prints(
        """
        st.config.num_cpu_devices = 3
        last = jax.devices()[2]
        f = jax.jit(lambda x: x + 1, device=last)
        print(f(1).devices() == {last}, f(np.ones(2)).committed)
        print(jax.jit(device=last)(abs)(-1).devices())
        print(jax.jit(lambda x: x + 1)(1).devices() == {last})
        for how in (
            {"device": last, "backend": "cpu"}, {"device": "cpu"},
            {"device": last, "out_shardings": last},
        ):
            try:
                jax.jit(abs, **how)
            except (TypeError, ValueError) as error:
                print(error)
        """
    ) == [
        *("True True", "{CpuDevice(id=2)}"),
        "False",
        "jax.jit: can't specify both a device and a backend, got device=CpuDevice(id=2) and "
        "backend='cpu'",
        "jax.jit: device must be one of jax.devices(); got 'cpu'",
        "jax.jit: device and out_shardings cannot both be given",
    ]


def test_they_are_strettos():
    x = snp.array([1.0, 2.0])
    f = lambda x, y: (snp.sin(x) * y).sum()
    np.testing.assert_array_equal(calls.grad(f, 1, reduce_axes=())(x, x), st.grad(f, 1)(x, x))
    value, gradient = calls.value_and_grad(lambda x: (f(x, x), 3), has_aux=True)(x)
    assert value[1] == 3 and gradient.shape == (2,)
    out, back = calls.vjp(f, x, x, reduce_axes=())
    assert len(back(snp.ones_like(out))) == 2
    (transposed,) = calls.linear_transpose(lambda x: 3 * x, x)(x)
    np.testing.assert_array_equal(transposed, [3, 6])


@pytest.mark.parametrize("name", ["grad", "value_and_grad"])
def test_axes_are_refused(name):
    with pytest.raises(NotImplementedError, match=rf"jax\.{name}: reduce_axes=\('i',\)"):
        getattr(calls, name)(lambda x: x, reduce_axes=("i",))
    with pytest.raises(NotImplementedError, match="reduce_axes"):
        calls.vjp(lambda x: x, 1.0, reduce_axes=("i",))
    with pytest.raises(NotImplementedError, match="reduce_axes"):
        calls.linear_transpose(lambda x: x, 1.0, reduce_axes=("i",))


def tripled():
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
    return f


def scaled():
    g = functools.partial(custom_vjp, nondiff_argnums=(1,))(lambda x, n: x)
    g.defvjp(lambda x, n: (g(x, n), None), lambda n, _, c: (n * c,))
    return g


def test_numbers_stay_numbers_at_rest():
    f, g = tripled(), scaled()
    assert f(1) == g(1, 2) == 1
    assert type(f(1)) is type(g(1, n=2)) is int
    assert type(f(2.0)) is type(g(2.0, 3)) is float
    anything = object()
    assert custom_jvp.__call__(f, anything) is anything


def test_the_rules_are_used_when_transformed():
    f, g = tripled(), scaled()
    assert (st.grad(f)(2.0), st.jit(st.grad(f))(2.0)) == (3, 3)
    assert (st.grad(g)(2.0, 5), st.grad(lambda x: g(x, n=7))(2.0)) == (5, 7)
    assert isinstance(st.jit(f)(1), st.Array)
    assert st.vmap(st.grad(f))(snp.ones(2)).tolist() == [3, 3]


def test_without_a_rule():
    with pytest.raises(AttributeError, match="custom_jvp: function has no rule"):
        custom_jvp(lambda x: x)(1.0)
    with pytest.raises(AttributeError, match="custom_vjp: function has no rules"):
        custom_vjp(lambda x: x)(1.0)


def counted():
    traces = []

    def f(x, n=1):
        traces.append(n)
        return x * n

    return f, traces


def test_a_loop_traces_once():
    f, traces = counted()
    assert [float(jit(f)(2.0)) for _ in range(5)] == [2.0] * 5
    assert len(traces) == 1  # though the first compiled function was gone at the second call
    g, traces = counted()
    held = jit(g)
    assert jit(g) is held and [float(jit(g)(2.0)) for _ in range(5)] == [2.0] * 5
    assert len(traces) == 1


def test_caches_that_are_cleared_are_forgotten_by_the_function():
    for clear in (lambda f: stretto.clear_caches(), lambda f: jit(f).clear_cache()):
        f, traces = counted()
        jit(f)(2.0)
        clear(f)
        jit(f)(2.0)
        assert len(traces) == 2


def test_options_make_others():
    f, _ = counted()
    plain, named = jit(f), jit(f, static_argnames="n")
    assert plain is not named and jit(f, static_argnames="n") is named
    assert jit(f, static_argnames=["n"]) is not named  # a list cannot be looked up
    assert float(named(2.0, n=3)) == 6


def test_a_decorator_that_copies_attributes_is_another_function():
    f, _ = counted()
    held = jit(f)

    @functools.wraps(f)
    def doubled(x):
        return 2 * f(x)

    assert jit(doubled) is not held and float(jit(doubled)(1.0)) == 2
    assert jit(f) is held


def test_a_function_jitted_once_is_freed_with_its_last_reference():
    gc.disable()
    try:
        f, _ = counted()
        jit(f)(1.0)
        seen = weakref.ref(f)
        del f
        assert seen() is None
    finally:
        gc.enable()


def test_what_is_kept_is_not_pickled():
    f, _ = counted()
    jit(f)
    kept = vars(f)[calls._NAME]
    assert len(kept) == 1 and len(pickle.loads(pickle.dumps(kept))) == 0
    assert not copy.copy(kept).is_of(f)
    assert float(jit(functools.partial(f, n=2))(1.0)) == 2  # no function, so nothing is kept


FLAG = "--xla_force_host_platform_device_count"


def test_the_flag_is_read_when_devices_are_first_needed():
    assert prints(
        f"""
        import os
        from jax._src import xla_bridge
        os.environ["XLA_FLAGS"] = "{FLAG}=3"
        print(dict(xla_bridge._backends), "cpu" in xla_bridge._backends)
        print(len(jax.devices()), jax.pmap(lambda x: 2 * x)(jnp.arange(3)).tolist())
        os.environ["XLA_FLAGS"] = "{FLAG}=5"
        print(jax.device_count(), xla_bridge._backends.get("cpu").platform)
        """
    ) == ["{} False", "3 [0, 2, 4]", "3 cpu"]


def test_the_setting_comes_first():
    code = "print(jax.local_device_count())"
    assert prints(code, XLA_FLAGS=f"{FLAG}=3", JAX_NUM_CPU_DEVICES="2") == ["2"]
    compiled = "jax.jit(lambda x: x @ x)(jnp.ones((300, 300)))\n"
    assert prints(compiled + code, XLA_FLAGS=f"{FLAG}=3") == ["3"]
