from __future__ import annotations

import inspect
import operator

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

GENERALISED = ("matmul", "vecdot", "matvec", "vecmat")
NAMES = [
    name
    for name in sorted(dir(np))
    if isinstance(getattr(np, name), np.ufunc) and hasattr(snp, name) and name not in GENERALISED
]
F = np.array([[1.5, 0.5, 2.0], [0.75, 1.25, 1.0], [2.0, 1.0, 0.5], [1.0, 3.0, 1.5]], np.float32)
ARRAYS = {"float32": F, "int32": (4 * F).astype(np.int32), "bool": F > 1}


def test_numpys_functions_have_the_methods_and_stay_functions():
    for name in NAMES:
        ours, theirs = getattr(snp, name), getattr(np, name)
        assert isinstance(ours, snp.ufunc), name
        assert inspect.isfunction(ours), name
        assert (ours.nin, ours.nout, ours.nargs) == (theirs.nin, theirs.nout, theirs.nargs), name
        assert ours.identity == theirs.identity, name
    assert not isinstance(snp.sum, snp.ufunc)


SPECIAL = ("add", "multiply", "maximum", "minimum", "logaddexp", "logaddexp2", "logical_and",
           "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
           "subtract", "gcd", "fmax")  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_as_numpy(name):
    ours, theirs = getattr(snp, name), getattr(np, name)
    for dtype, host in ARRAYS.items():
        x = snp.array(host)
        if (name.startswith("bitwise") or name == "gcd") and dtype == "float32":
            continue
        if dtype == "bool" and name in ("subtract", "gcd"):
            continue
        calls = {
            "reduce": [{}, {"axis": 1, "keepdims": True}, {"initial": 1, "where": host > 1}],
            "accumulate": [{}, {"axis": 1}],
        }  # fmt: skip
        if name != "subtract":  # NumPy reduces it along one axis alone
            calls["reduce"].append({"axis": None})
        for method, settings in calls.items():
            for kwargs in settings:
                agree(getattr(ours, method)(x, **kwargs), getattr(theirs, method)(host, **kwargs))
        agree(ours.outer(x[0], x[:, 1]), theirs.outer(host[0], host[:, 1]))
        agree(ours.reduceat(x, np.array([0, 2, 1])), theirs.reduceat(host, np.array([0, 2, 1])))


def agree(got, want):
    got = np.asarray(got)
    assert got.shape == want.shape
    # NumPy computes with booleans in float16
    tolerance = 2e-3 if want.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), tolerance)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "power"])
def test_at_as_numpy(name):
    at = np.array([0, 2, 0])
    want = F.copy()
    getattr(np, name).at(want, at, F[:3])
    got = getattr(snp, name).at(snp.array(F), at, F[:3], inplace=False)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_sum_stays_one_operation():
    graph = st.make_graph(lambda x: snp.add.reduce(x, axis=1))(snp.ones((2, 3)))
    assert [e.primitive.name for e in graph.equations] == ["reduce_sum"]


@pytest.mark.parametrize(
    "name",
    ["fabs", "degrees", "radians", "deg2rad", "rad2deg", "isposinf", "isneginf", "floor", "cbrt"]
    + ["ceil", "trunc", "signbit"],
)
def test_complex_numbers_that_numpy_refuses(name):
    for kind in (np.complex64, np.complex128):
        with pytest.raises(TypeError):
            getattr(np, name)(np.ones(2, kind))
    with pytest.raises(TypeError, match=r"real|complex"):
        getattr(snp, name)(snp.ones(2) + 1j)


@pytest.mark.parametrize("name", ["hypot", "arctan2", "fmod", "copysign", "nextafter", "heaviside"])
def test_complex_pairs_that_numpy_refuses(name):
    with pytest.raises(TypeError):
        getattr(np, name)(np.ones(2) + 1j, np.ones(2))
    with pytest.raises(TypeError, match=r"real|complex"):
        getattr(snp, name)(snp.ones(2) + 1j, snp.ones(2))


@pytest.mark.parametrize("function", [snp.negative, snp.sign, operator.neg])
def test_booleans_have_no_sign(function):
    with pytest.raises(TypeError, match=r"expected numbers, got bool\[2\]; use ~x"):
        function(snp.array([True, False]))
