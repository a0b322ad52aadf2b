"""Images at other sizes: JAX's values, derivatives, vmap, dtypes and errors."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.image import ResizeMethod, resize, scale_and_translate

X = np.array([1, 4, 2, 5], np.float32)

# What jax.image 0.10.2 gives for X: at size 3 with and without antialias, at size 7, scaled by 1/2
# and moved by 3/2 with antialias, scaled by 3/2 and moved by -1/2 without.
EXPECTED = {
    "linear": (
        [1.9, 3.0, 4.1],
        [1.5, 3.0, 4.5],
        [1.0, 2.071429, 3.785714, 3.0, 2.214286, 3.928572, 5.0],
        [0.0, 1.75, 3.0, 4.25, 0.0],
        [1.5, 3.5, 3.0, 2.5, 4.5],
    ),
    "cubic": (
        [1.855835, 3.0, 4.144165],
        [1.363239, 3.0, 4.636762],
        [0.762019, 1.982522, 3.92565, 3.0, 2.07435, 4.017479, 5.237982],
        [0.0, 1.515625, 3.0, 4.484375, 0.0],
        [1.363239, 3.723112, 3.0, 2.276888, 4.636762],
    ),
    "cubic-pytorch": (
        [1.855835, 3.0, 4.144165],
        [1.465278, 3.0, 4.534722],
        [0.762019, 1.982522, 3.92565, 3.0, 2.07435, 4.017479, 5.237982],
        [0.0, 1.515625, 3.0, 4.484375, 0.0],
        [1.465278, 3.743054, 3.0, 2.256945, 4.534722],
    ),
    "lanczos3": (
        [1.972624, 3.0, 4.027377],
        [1.439126, 3.0, 4.560874],
        [0.587183, 2.076382, 3.925899, 3.0, 2.074101, 3.923618, 5.412818],
        [0.0, 1.423651, 3.0, 4.57635, 0.0],
        [1.439126, 3.741424, 3.0, 2.258576, 4.560874],
    ),
    "lanczos5": (
        [2.05352, 3.0, 3.94648],
        [1.548244, 3.0, 4.451756],
        [0.394812, 2.232237, 3.933529, 3.0, 2.066471, 3.767764, 5.605188],
        [0.0, 1.313639, 3.0, 4.686362, 0.0],
        [1.548244, 3.769411, 3.0, 2.230591, 4.451755],
    ),
    "area": (
        [1.75, 3.0, 4.25],
        [1.75, 3.0, 4.25],
        [1.0, 1.75, 4.0, 3.0, 2.0, 4.25, 5.0],
        [0.0, 1.0, 3.0, 5.0, 0.0],
        [1.0, 4.0, 3.0, 2.0, 5.0],
    ),
}


def everything(x):
    out = {}
    for method in EXPECTED:
        pairs = ([0.5, 1.5, True], [1.5, -0.5, False])
        out[method] = [
            resize(x, (3,), method),
            resize(x, (3,), method, antialias=False),
            resize(x, (7,), method),
            *(
                scale_and_translate(x, (5,), (0,), snp.array([s]), snp.array([t]), method, a)
                for s, t, a in pairs
            ),
        ]
    return out


def test_is_jaxs():
    for run in (everything, st.jit(everything)):
        for method, results in run(X).items():
            for got, want in zip(results, EXPECTED[method], strict=True):
                np.testing.assert_allclose(got, want, atol=3e-6)
    np.testing.assert_array_equal(resize(X, (3,), "nearest"), [1, 2, 5])
    np.testing.assert_array_equal(resize(X, (7,), "nearest"), [1, 1, 4, 2, 2, 5, 5])


def test_axes_one_after_the_other_and_vmap():
    x = np.random.default_rng(0).normal(size=(2, 4, 5)).astype(np.float32)
    both = st.jit(lambda x: resize(x, (2, 3, 7), ResizeMethod.CUBIC))(x)
    alone = resize(resize(x, (2, 3, 5), "bicubic"), (2, 3, 7), "tricubic")
    np.testing.assert_allclose(both, alone, atol=1e-5)
    np.testing.assert_allclose(st.vmap(lambda x: resize(x, (3, 7), "cubic"))(x), both, atol=1e-5)


def test_scale_and_translation_have_derivatives():
    with st.enable_x64():

        def f(scale, translation):
            out = scale_and_translate(X.astype(float), (6,), (0,), scale, translation, "cubic")
            return snp.sum(snp.sin(out))

        at = snp.array([1.3]), snp.array([-0.2])
        for i, g in enumerate(st.jit(st.grad(f, argnums=(0, 1)))(*at)):
            ahead, behind = (
                f(*[v + (s if j == i else 0) for j, v in enumerate(at)]) for s in (1e-6, -1e-6)
            )
            np.testing.assert_allclose(g[0], (ahead - behind) / 2e-6, rtol=1e-6)


def test_dtypes():
    ints = np.arange(6, dtype=np.int32)
    assert resize(ints, (3,), "nearest").dtype == np.int32
    assert resize(ints, (3,), "linear").dtype == np.float32
    assert resize(ints.astype(np.complex64), (3,), "linear").dtype == np.complex64
    assert resize(ints.astype(np.float16), (3,), "linear").dtype == np.float16
    assert resize(X, (0,), "linear").shape == (0,)


def test_refuses():
    one = np.ones(1, np.float32)
    with pytest.raises(ValueError, match=r"resize: method must be a ResizeMethod or one of.*'b"):
        resize(X, (3,), "best")
    with pytest.raises(ValueError, match=r"resize: shape must have a size for each axis.*3, 3"):
        resize(X, (3, 3), "linear")
    with pytest.raises(
        ValueError, match=r"an axis of float32\[0\] is empty, so \(3,\) cannot be made from it"
    ):
        resize(X[:0], (3,), "linear")
    with pytest.raises(ValueError, match="method 'nearest' is not available here; use resize"):
        scale_and_translate(X, (4,), (0,), one, one, "nearest")
    with pytest.raises(ValueError, match=r"scale must have shape \(1,\), got float32\[4\]"):
        scale_and_translate(X, (4,), (0,), X, one, "linear")
    with pytest.raises(ValueError, match=r"axes \[1\] are not in spatial_dims"):
        scale_and_translate(X[None], (1, 3), (0,), one, one, "linear")
