from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(6, dtype=np.int32).reshape(2, 3)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("reshape", ((4, 6),)),
        ("reshape", ((-1, 2),)),
        ("reshape", (24,)),
        ("ravel", ()),
        ("transpose", ()),
        ("transpose", ((1, 0, -1),)),
        ("permute_dims", ((2, 0, 1),)),
        ("matrix_transpose", ()),
        ("swapaxes", (0, -1)),
        ("moveaxis", (0, -1)),
        ("moveaxis", ((0, 1), (-1, 0))),
        ("rollaxis", (2,)),
        ("rollaxis", (0, 3)),
        ("expand_dims", (1,)),
        ("expand_dims", ((0, -1),)),
        ("squeeze", ()),
        ("flip", ()),
        ("flip", (1,)),
        ("flip", ((0, 2),)),
        ("flipud", ()),
        ("fliplr", ()),
        ("rot90", ()),
        ("rot90", (2,)),
        ("rot90", (3, (1, 2))),
        ("rot90", (-1, (2, 0))),
        ("roll", (1,)),
        ("roll", (-5, 1)),
        ("roll", ((1, 2), (0, 2))),
        ("roll", (2, (0, 1))),
        ("broadcast_to", ((5, 2, 3, 4),)),
        ("diagonal", ()),
        ("diagonal", (1, 1, 2)),
        ("diagonal", (-1, 2, 0)),
        ("diagonal", (9,)),
        ("trace", ()),
        ("trace", (1, 1, 2)),
        ("atleast_1d", ()),
        ("atleast_2d", ()),
        ("atleast_3d", ()),
    ],
)
def test_as_numpy(agree, name, args):
    agree(name, X, *args, dtype="float32")


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (3, 1, 1)])
def test_shapes(agree, shape):
    x = np.ones(shape, np.float32)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d", "squeeze", "ravel", "transpose"):
        agree(name, x)


def test_column_major(agree):
    agree("reshape", X, (6, 4), order="F")
    agree("ravel", X, order="F")
    with pytest.raises(ValueError, match="order"):
        snp.reshape(snp.array(X), 24, order="Q")


def test_several(agree):
    got = snp.broadcast_arrays(snp.ones((3, 1)), np.ones(4), 2)
    assert [g.shape for g in got] == [(3, 4)] * 3
    assert snp.broadcast_shapes((3, 1), 4, (1,)) == (3, 4)
    assert snp.broadcast_shapes() == ()
    assert [x.ndim for x in snp.atleast_2d(1.0, snp.ones(3))] == [2, 2]
    with pytest.raises(ValueError, match="do not broadcast"):
        snp.broadcast_shapes((3,), (4,))


def test_astype():
    x = snp.array([1.7, -1.7, np.nan, 1e20])
    assert x.astype(int).tolist() == [1, -1, 0, 2**31 - 1]
    assert x.astype("bfloat16").dtype == snp.bfloat16
    assert not snp.astype(snp.asarray(1.0), snp.float32).weak_type


def test_errors():
    x = snp.array(X)
    with pytest.raises(ValueError, match="does not fit"):
        snp.reshape(x, (5, -1))
    with pytest.raises(ValueError, match="size other than 1"):
        snp.squeeze(x, 0)
    with pytest.raises(ValueError, match="out of bounds"):
        snp.swapaxes(x, 0, 3)
    with pytest.raises(ValueError, match="the same number of axes"):
        snp.moveaxis(x, (0, 1), 0)
    with pytest.raises(ValueError, match="rank 2 or more"):
        snp.diagonal(snp.ones(3))
    with pytest.raises(TypeError, match="array"):
        snp.reshape([1, 2], (2, 1))


@pytest.mark.parametrize("f", [lambda x: snp.diagonal(x, 1), lambda x: snp.roll(x, 1), snp.rot90,
                               snp.trace, lambda x: snp.moveaxis(x, 0, 1)])  # fmt: skip
def test_derivatives_are_adjoint(f):
    x = snp.array(X[0])
    out, pull = st.vjp(f, x)
    ct = snp.ones(out.shape) * 2
    (back,) = pull(ct)
    assert float((back * x).sum()) == pytest.approx(float((ct * out).sum()))


def test_trace_at_a_traced_diagonal():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    trace = st.jit(snp.trace, static_argnums=(2, 3))
    for k in (-3, -1, 0, 2, 7):
        np.testing.assert_array_equal(trace(x, k, 1, 2), np.trace(x, k, 1, 2))
        np.testing.assert_array_equal(trace(x, k, 2, 0), np.trace(x, k, 2, 0))
    assert trace(np.ones((2, 2), np.int8), 0).dtype == snp.int32
    with pytest.raises(TypeError, match="trace: offset must be an integer"):
        snp.trace(x, 1.5)
    with pytest.raises(ValueError, match="rank 2 or more"):
        trace(x[0, 0], 1)
