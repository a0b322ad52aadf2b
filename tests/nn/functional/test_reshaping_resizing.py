"""Images made larger or smaller: PyTorch's figures, simple cases, laws, messages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st_

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    ("interpolate", {"input": (2, 2, 3)}, {"scale_factor": 2}, [(2, 2, 6), -2.22776, -0.30929]),
    ("interpolate", {"input": (1, 2, 5, 4)}, {"size": (3, 7)}, [(1, 2, 3, 7), -2.72576, -1.73356]),
    (
        "interpolate",
        {"input": (1, 2, 5, 4)},
        {"size": (3, 7), "mode": "nearest-exact"},
        [(1, 2, 3, 7), -4.10313, 5.22542],
    ),
    (
        "interpolate",
        {"input": (1, 2, 5, 4)},
        {"scale_factor": 1.7},
        [(1, 2, 8, 6), -0.98346, 1.3113],
    ),
    (
        "interpolate",
        {"input": (2, 2, 4)},
        {"size": 7, "mode": "linear"},
        [(2, 2, 7), 0.12332, -0.52713],
    ),
    (
        "interpolate",
        {"input": (1, 2, 5, 4)},
        {"size": (3, 7), "mode": "bilinear", "align_corners": True},
        [(1, 2, 3, 7), -3.58711, 3.70386],
    ),
    (
        "interpolate",
        {"input": (1, 2, 5, 4)},
        {"scale_factor": (1.3, 2.0), "mode": "bilinear"},
        [(1, 2, 6, 8), 0.14245, 0.16321],
    ),
    (
        "interpolate",
        {"input": (1, 2, 5, 4)},
        {"scale_factor": (1.3, 2.0), "mode": "bilinear", "recompute_scale_factor": True},
        [(1, 2, 6, 8), 0.12141, 0.81771],
    ),
    (
        "interpolate",
        {"input": (1, 2, 5, 4)},
        {"size": (3, 7), "mode": "bicubic"},
        [(1, 2, 3, 7), -2.61582, 1.97134],
    ),
    (
        "interpolate",
        {"input": (1, 1, 3, 2, 4)},
        {"scale_factor": 2, "mode": "trilinear"},
        [(1, 1, 6, 4, 8), -4.54917, -9.33471],
    ),
    (
        "interpolate",
        {"input": (1, 2, 5, 4)},
        {"size": (2, 3), "mode": "area"},
        [(1, 2, 2, 3), 1.63176, 0.02532],
    ),
    # To the same size, or twice that, PyTorch copies whatever the scale.
    (
        "interpolate",
        {"input": (1, 2, 2, 3)},
        {"scale_factor": 2.3},
        [(1, 2, 4, 6), -2.01907, -0.49223],
    ),
    (
        "interpolate",
        {"input": (1, 2, 7, 2)},
        {"scale_factor": (2.0, 1.3), "mode": "bilinear"},
        [(1, 2, 14, 2), -0.72397, 1.7643],
    ),
    (
        "interpolate",
        {"input": (1, 1, 2, 3)},
        {"scale_factor": 2.3, "mode": "nearest-exact"},
        [(1, 1, 4, 6), -3.77208, -0.82011],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def test_whole_factors_repeat():
    x = np.arange(6.0, dtype="f").reshape(1, 1, 2, 3)
    want = x.repeat(3, 2).repeat(2, 3)
    np.testing.assert_array_equal(F.interpolate(x, scale_factor=(3, 2)), want)
    np.testing.assert_array_equal(F.interpolate(x, size=(6, 6), mode="nearest-exact"), want)
    text = st.jit(lambda x: F.interpolate(x, scale_factor=2)).lower(x).as_text()
    assert "gather" not in text and "dot" not in text


def test_a_line_stays_a_line():
    x = np.linspace(0, 1, 5, dtype="f")[None, None]
    got = F.interpolate(x, size=9, mode="linear", align_corners=True)
    np.testing.assert_allclose(got[0, 0], np.linspace(0, 1, 9), atol=1e-6)
    square = snp.array(x[..., None] * np.ones(4, "f"))
    got = F.interpolate(square, size=(9, 4), mode="bicubic", align_corners=True)
    np.testing.assert_allclose(got[0, 0, 2:7, 0], np.linspace(0, 1, 9)[2:7], atol=1e-6)


@given(st_.integers(60, 140), st_.integers(20, 300), st_.booleans(), st_.integers(0, 9))
def test_long_axes_are_interpolated(n, m, align_corners, seed):
    """Those where a few elements are read for each one, and those where that is no gain."""
    rng = np.random.default_rng(seed)
    x, ct = rng.normal(size=(1, 2, n)), rng.normal(size=(1, 2, m))
    places = (
        np.arange(m) * (n - 1) / (m - 1) if align_corners else (np.arange(m) + 0.5) * n / m - 0.5
    )
    want = np.stack([np.interp(places, np.arange(n), line) for line in x[0]])[None]

    def resize(x):
        return F.interpolate(x, size=m, mode="linear", align_corners=align_corners)

    def gradient(x, ct):
        return st.vjp(resize, x)[1](ct)[0]

    with st.enable_x64():
        for run in (lambda f: f, st.jit):
            np.testing.assert_allclose(run(resize)(x), want, rtol=1e-9, atol=1e-9)
            # <ct, A x> = <A* ct, x>
            back = np.asarray(run(gradient)(x, ct))
            np.testing.assert_allclose((back * x).sum(), (ct * want).sum(), rtol=1e-9, atol=1e-9)
        again = st.jit(lambda x, ct: st.vjp(lambda ct: gradient(x, ct), ct)[1](x)[0])(x, ct)
        np.testing.assert_allclose(again, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["linear", "bilinear"])
def test_laws_of_long_axes(mode):
    shape = (1, 2, 70) if mode == "linear" else (1, 1, 2, 70)
    size = 130 if mode == "linear" else (3, 130)
    laws.check(lambda x: F.interpolate(x, size, mode=mode), [f32(*shape)])


def test_dtypes():
    x = snp.array([[[1, 3]]])
    assert F.interpolate(x, scale_factor=2).dtype == snp.int32
    assert F.interpolate(x, size=3, mode="linear").dtype == snp.float32
    narrow = F.interpolate(snp.ones((1, 1, 3), snp.bfloat16), size=5, mode="linear")
    assert narrow.dtype == snp.bfloat16 and (narrow == 1).all()
    with st.enable_x64():
        thirds = snp.array(np.array([[[0.0, 1.0]]]))
        out = F.interpolate(thirds, size=4, mode="linear", align_corners=True)
        np.testing.assert_allclose(out[0, 0], [0, 1 / 3, 2 / 3, 1], rtol=1e-15)


@pytest.mark.parametrize("mode", ["nearest", "area", "bilinear", "bicubic"])
def test_laws(mode):
    laws.check(lambda x: F.interpolate(x, (5, 2), mode=mode), [f32(1, 2, 3, 4)])


X = snp.ones((1, 2, 4, 4))
MESSAGES = [
    (lambda: F.interpolate(X), "give size or scale_factor, one of them"),
    (lambda: F.interpolate(X, 2, 2.0), "give size or scale_factor, one of them"),
    (lambda: F.interpolate(X, 2, mode="linear"), "mode 'linear' does not fit input float32"),
    (lambda: F.interpolate(X, 2, mode="cubic"), "there are .*'bicubic'"),
    (lambda: F.interpolate(X, 2, align_corners=True), "align_corners is for the linear"),
    (lambda: F.interpolate(X, (2, 2, 2)), "size must be a positive number, or 2"),
    (lambda: F.interpolate(X, scale_factor=0.1), "leaves nothing of input"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_antialias_is_a_filter_as_wide_as_what_an_output_stands_for():
    line = np.arange(8.0, dtype=np.float32).reshape(1, 1, 1, 8)
    found = F.interpolate(line, (1, 4), mode="bilinear", antialias=True)[0, 0, 0]
    # Triangles of half-width 2: weights 1, 3, 3, 1 over 8 inside, and 3, 3, 1 over 7 at the ends.
    np.testing.assert_allclose(found, [5 / 7, 2.5, 4.5, 44 / 7], rtol=1e-6)
    for mode in ("bilinear", "bicubic"):
        whole = F.interpolate(snp.ones((1, 1, 7, 9)), (3, 14), mode=mode, antialias=True)
        np.testing.assert_allclose(whole, np.ones((1, 1, 3, 14)), rtol=1e-6)
        same_size = F.interpolate(line, (1, 8), mode=mode, antialias=True)
        np.testing.assert_allclose(same_size, line, atol=1e-6)
    with pytest.raises(ValueError, match=r"antialias is for the modes \['bilinear', 'bicubic'\]"):
        F.interpolate(line, (1, 4), antialias=True)


def test_upsample_is_named_in_its_messages():
    with pytest.raises(ValueError, match=r"^upsample: mode 'nearest' does not fit"):
        F.upsample(snp.ones((2, 4)), 2)
