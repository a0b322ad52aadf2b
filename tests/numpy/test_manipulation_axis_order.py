"""The order of the axes."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transpose", ()),
        ("transpose", ((1, -1, 0),)),
        ("permute_dims", ((2, 0, 1),)),
        ("matrix_transpose", ()),
        ("swapaxes", (0, -1)),
        ("moveaxis", (0, 2)),
        ("moveaxis", ((0, 1), (-1, 0))),
        ("rollaxis", (2,)),
        ("rollaxis", (0, 3)),
    ],
)
def test_axes_are_where_numpy_has_them(name, arguments):
    ours, numpys = getattr(snp, name), getattr(np, name)
    want = numpys(X, *arguments)
    np.testing.assert_array_equal(ours(snp.asarray(X), *arguments), want)
    np.testing.assert_array_equal(st.jit(lambda x: ours(x, *arguments))(X), want)
    # The transpose of an order of axes is the order that undoes it.
    weights = np.random.default_rng(0).normal(size=want.shape).astype(np.float32)
    slope = st.grad(lambda x: (ours(x, *arguments) * weights).sum())(snp.asarray(X))
    places = numpys(np.arange(X.size).reshape(X.shape), *arguments)
    np.testing.assert_array_equal(
        np.asarray(slope).reshape(-1)[places.reshape(-1)], weights.ravel()
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: snp.transpose(x, (0, 1)), "transpose"),
        (lambda x: snp.transpose(x, (0, 1, 1)), "transpose"),
        (lambda x: snp.swapaxes(x, 0, 3), "swapaxes"),
        (lambda x: snp.moveaxis(x, (0, 1), 2), "moveaxis"),
        (lambda x: snp.matrix_transpose(x[0, 0]), "matrix_transpose"),
        (lambda x: snp.rollaxis(x, 3), "rollaxis"),
    ],
)
def test_refusals_name_the_function(call, words):
    with pytest.raises((ValueError, IndexError), match=words):
        call(snp.asarray(X))


def test_pytorchs_transpose_of_two_axes():
    x = snp.ones((2, 3, 4))
    with pytest.raises(
        ValueError, match=r"name all 3 axes of .*; to exchange two use (.*)$"
    ) as error:
        x.transpose(1, 2)
    assert eval(str(error.value).split("use ")[1], {"x": x}).shape == (2, 4, 3)
