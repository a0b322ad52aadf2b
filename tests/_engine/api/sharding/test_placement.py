"""Arrays and their devices: to and from NumPy, and which arrays are alive."""

import gc

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.sharding.placement import copy_to_host_async


def test_device_put_makes_arrays_of_a_trees_leaves():
    x = snp.arange(3)
    host = np.array([1.0, 2.0])
    put = st.device_put({"x": x, "host": host, "n": 2, "none": None, "half": np.float16(0.5)})
    assert put["x"] is x and put["none"] is None
    assert put["host"].dtype == np.float32 and put["half"].dtype == np.float16
    assert put["n"].weak_type and put["n"].dtype == np.int32
    host[0] = 7.0
    assert put["host"].tolist() == [1.0, 2.0]


def test_device_put_takes_the_device_that_there_is():
    device = st.devices()[0]
    for where in (None, device, "cpu", "cpu:0"):
        assert st.device_put(1.5, where).device == device
    pair = st.device_put((1.0, [2.0, 3.0]), (None, device), src=device, donate=True)
    assert pair[1][1].devices() == {device}
    key = st.random.key(3)
    assert (st.random.key_data(st.device_put(key, device)) == st.random.key_data(key)).all()


@pytest.mark.parametrize("where", ["tpu", "cpu:1", 3, object()])
def test_device_put_refuses_other_devices(where):
    with pytest.raises(
        ValueError, match=r"device_put: device must be None or CpuDevice\(id=0\) .* got"
    ):
        st.device_put(1.0, where)
    with pytest.raises(ValueError, match=r"device_put: src must be None or CpuDevice"):
        st.device_put(1.0, src=where)


def test_device_put_refuses_what_is_no_array():
    with pytest.raises(TypeError, match=r"device_put: x\['a'\]\[1\] must be an array"):
        st.device_put({"a": [1.0, "b"]})
    with pytest.raises(ValueError, match="device_put: device must be a prefix of the tree"):
        st.device_put((1.0, 2.0), (None,))


def test_device_put_is_the_identity_where_things_are_traced():
    device = st.devices()[0]
    assert st.jit(lambda x: st.device_put(x, device) * 2)(3.0) == 6.0
    assert st.grad(lambda x: st.device_put(x, device) ** 2)(3.0) == 6.0
    assert st.vmap(st.device_put)(snp.arange(3)).tolist() == [0, 1, 2]


def test_device_get_gives_numpy_arrays():
    got = st.device_get({"x": snp.ones((2,), "bfloat16"), "n": 1, "none": None, "s": "text"})
    assert type(got["x"]) is np.ndarray and got["x"].dtype == snp.bfloat16
    assert not got["x"].flags.writeable
    assert (got["n"], got["none"], got["s"]) == (1, None, "text")
    assert st.device_get(snp.float32(2)).shape == ()
    with pytest.raises(TypeError, match="NumPy was given a traced value"):
        st.jit(st.device_get)(1.0)


def test_copying_to_the_host_gives_the_tree_back():
    tree = {"x": st.jit(lambda x: x * 2)(snp.ones(3)), "n": 1}
    assert copy_to_host_async(tree) is tree


def test_live_arrays_are_those_that_something_holds():
    def alive(shape):
        return [x for x in st.debug.live_arrays() if x.shape == shape]

    shape = (3, 1, 4, 1, 5)
    assert alive(shape) == []
    made = snp.ones(shape)
    ran = st.jit(lambda x: snp.sin(x) @ snp.swapaxes(x, -1, -2))(made)
    assert len(alive(shape)) == 1 and alive(shape)[0] is made
    assert any(x is ran for x in st.debug.live_arrays("cpu"))
    held = [made + 1, made.T.T]
    assert len(alive(shape)) == 3
    held.clear()
    made.delete()
    gc.collect()
    assert alive(shape) == []
    with pytest.raises(RuntimeError, match="there is no backend 'tpu'; there are 'cpu'"):
        st.debug.live_arrays("tpu")
