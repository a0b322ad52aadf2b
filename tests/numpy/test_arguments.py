"""Checks of arguments that families share."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy import arguments


def test_integers_known_and_traced():
    assert arguments.integer_or_traced(np.int64(3), "f", "n") == 3
    assert arguments.integer_or_traced(snp.array(3), "f", "n") == 3
    seen = []
    st.jit(lambda n: seen.append(arguments.integer_or_traced(n, "f", "n")) or n)(3)
    assert seen[0].shape == ()
    for bad in (1.5, np.ones(2)):
        with pytest.raises(TypeError, match="f: n must be an integer"):
            arguments.integer_or_traced(bad, "f", "n")
        with pytest.raises(TypeError, match="f: n must be an integer"):
            st.jit(lambda n: arguments.integer_or_traced(n, "f", "n"))(bad)


def test_values_of_one_inexact_dtype():
    x, y = arguments.inexact_values("f", x=np.arange(2), y=np.float16(1))
    assert x.dtype == y.dtype == snp.result_type(np.arange(2, dtype=np.int32), np.float16)
    (z,) = arguments.inexact_values("f", z=3)
    assert z.dtype == np.float32
    assert arguments.inexact_values("f", z=1j)[0].dtype == np.complex64
    with pytest.raises(TypeError, match=r"f: .*y"):
        arguments.inexact_values("f", x=1.0, y="text")


def test_booleans_count_as_integers():
    x, y = arguments.numeric_values("f", np.array([True, False]), True)
    assert x.dtype == y.dtype == np.int32 and x.shape == y.shape == (2,)
    x, y = arguments.numeric_values("f", np.float32(1), np.ones(3, np.float32))
    assert x.dtype == np.float32 and x.shape == (3,)


def test_refusals():
    assert arguments.refuse_out("f", None) is arguments.refuse_inplace("f", False) is None
    with pytest.raises(NotImplementedError, match="f: arrays are immutable, so there is no out="):
        arguments.refuse_out("f", np.ones(2))
    with pytest.raises(ValueError, match=r"with inplace=False the updated array .*x = f\(x"):
        arguments.refuse_inplace("f", True)
    arguments.refuse_complex("f", x=1.0)
    with pytest.raises(TypeError, match=r"f: y must be real, got complex64\[2\]; take its .real"):
        arguments.refuse_complex("f", x=1.0, y=np.ones(2, np.complex64))


def test_where_results_are_put():
    x, mesh = snp.ones(2), st.make_mesh((1,), ("x",))
    for device in (None, "cpu", st.devices()[0], x.sharding):
        assert arguments.put_result(x, device, None, "f") is x
    split = st.sharding.NamedSharding(mesh, st.P("x"))
    assert arguments.put_result(x, split, None, "f").sharding == split
    assert arguments.put_result(x, None, split, "f").sharding == split
    with st.sharding.set_mesh(mesh):
        assert arguments.put_result(x, None, st.P("x"), "f").sharding == split
    with pytest.raises(ValueError, match=r"f: device must be None or CpuDevice.* got 'tpu'"):
        arguments.put_result(x, "tpu", None, "f")
    with pytest.raises(ValueError, match=r"f: device and out_sharding both say .* got 'cpu' and"):
        arguments.put_result(x, "cpu", split, "f")
