"""What the array API standard lets a program ask: dtypes by setting and kind, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

INFO = snp.__array_namespace_info__()


def test_dtypes_follow_the_setting():
    assert "float64" not in INFO.dtypes() and "int64" not in INFO.dtypes()
    assert INFO.default_dtypes()["indexing"] == np.int32
    with st.enable_x64():
        assert {"float64", "int64", "uint64", "complex128"} <= set(INFO.dtypes())
        defaults = INFO.default_dtypes()
    assert set(defaults) == {"real floating", "complex floating", "integral", "indexing"}
    assert [d.name for d in defaults.values()] == ["float64", "complex128", "int64", "int64"]
    assert all(dtype.name == name for name, dtype in INFO.dtypes().items())


@pytest.mark.parametrize("kind", ["bool", "signed integer", "unsigned integer", "integral",
                                  "real floating", "complex floating", "numeric"])  # fmt: skip
def test_kinds(kind):
    with st.enable_x64():
        found = INFO.dtypes(kind=kind)
        assert found == {n: d for n, d in INFO.dtypes().items() if snp.isdtype(d, kind)} != {}
        both = INFO.dtypes(kind=("bool", kind))
    assert both == {**INFO.dtypes(kind="bool"), **both} and found.keys() <= both.keys()


def test_devices_and_capabilities():
    assert INFO.devices() == [INFO.default_device()] == [snp.zeros(1).device]
    assert INFO.dtypes(device=INFO.default_device()) == INFO.dtypes()
    most = INFO.capabilities()["max dimensions"]
    assert snp.zeros((1,) * most).ndim == most


def test_refusals():
    with pytest.raises(ValueError, match="kind"):
        INFO.dtypes(kind="float")
    for method in (INFO.dtypes, INFO.default_dtypes):
        with pytest.raises(ValueError, match=method.__name__):
            method(device="tpu")
