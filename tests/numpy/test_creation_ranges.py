from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


@pytest.mark.parametrize(
    ("args", "dtype"),
    [
        ((3,), "int32"),
        ((0,), "int32"),
        ((2, 7), "int32"),
        ((7, 2, -2), "int32"),
        ((3.0,), "float32"),
        ((0, 1, 0.25), "float32"),
        ((1.5, 3), "float32"),
        ((5, 1), "int32"),
        ((np.int8(3),), "int8"),
    ],
)
def test_arange(agree, args, dtype):
    agree("arange", *args, dtype=dtype)


def test_arange_of_a_dtype():
    assert snp.arange(3, dtype=snp.bfloat16).tolist() == [0, 1, 2]
    assert snp.arange(3, dtype=bool) is not None
    assert snp.arange(2, dtype=float).dtype == snp.float32
    assert snp.arange(snp.array(3)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="step must not be zero"):
        snp.arange(0, 1, 0)
    with pytest.raises(OverflowError):
        snp.arange(300, dtype=snp.int8)
    with pytest.raises(TypeError, match="static_argnums"):
        st.jit(snp.arange)(3)


def test_arange_is_no_constant_of_a_program():
    text = str(st.make_graph(lambda x: x + snp.arange(100000))(snp.zeros(100000, int)))
    assert "iota" in text


@pytest.mark.parametrize("num", [0, 1, 2, 5])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(agree, num, endpoint):
    agree("linspace", 0, 10, num, endpoint, dtype="float32")
    agree("linspace", -1.5, 2.0, num=num, endpoint=endpoint, dtype="float32")
    a, b = np.array([0.0, 1.0], np.float32), np.array([10.0, -5.0], np.float32)
    agree("linspace", a, b, num, endpoint, dtype="float32")
    agree("linspace", a, b, num, endpoint, axis=-1, dtype="float32")


def test_linspace_settings():
    values, step = snp.linspace(0, 1, 5, retstep=True)
    assert (values[1].item(), step.item()) == (0.25, 0.25)
    assert snp.linspace(0, 10, 4, dtype=int).tolist() == [0, 3, 6, 10]
    assert snp.linspace(snp.array(0.0), 10, 4, dtype=int).tolist() == [0, 3, 6, 10]
    assert float(st.grad(lambda b: snp.linspace(0.0, b, 3).sum())(1.0)) == 1.5
    with pytest.raises(ValueError, match="num must not be negative"):
        snp.linspace(0, 1, -1)


def test_logspace_geomspace(agree):
    agree("logspace", 0, 3, 4, rtol=1e-5)
    agree("logspace", 0.0, 3.0, 4, False, base=2.0, rtol=1e-5)
    agree("geomspace", 1, 1000, 4, rtol=1e-5)
    agree("geomspace", 1.0, 256.0, 9, False, rtol=1e-5)


def test_meshgrid_indices():
    x, y, z = np.arange(2), np.arange(3) + 10, np.arange(4)
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            for arrays in ((x,), (x, y), (x, y, z)):
                got = snp.meshgrid(*arrays, indexing=indexing, sparse=sparse)
                want = np.meshgrid(*arrays, indexing=indexing, sparse=sparse)
                for g, w in zip(got, want, strict=True):
                    np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(snp.indices((2, 3)), np.indices((2, 3)))
    for g, w in zip(snp.indices((2, 3), sparse=True), np.indices((2, 3), sparse=True), strict=True):
        np.testing.assert_array_equal(g, w)
    with pytest.raises(ValueError, match="indexing"):
        snp.meshgrid(x, y, indexing="yx")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: snp.arange("3"), TypeError, r"arange: start must be an array or a number"),
        (
            lambda: snp.arange([3]),
            TypeError,
            r"arange: start must be an array or a number; got a list",
        ),
        (lambda: snp.arange(None), TypeError, r"arange: start must be a number, got None"),
        (
            lambda: snp.arange(0, snp.ones(2)),
            TypeError,
            r"arange: stop must be a real number, got float32\[2\]",
        ),
        (lambda: snp.logspace(0, 1, -1), ValueError, r"logspace: num must not be negative"),
        (lambda: snp.geomspace(1, 2, 1.5), TypeError, r"geomspace: num must be an integer"),
        (lambda: snp.logspace(snp.ones(2), snp.ones(3)), ValueError, r"logspace: shapes"),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
