"""Transformations with JAX's parameters."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import calls
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
