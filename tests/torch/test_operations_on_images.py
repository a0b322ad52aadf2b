"""Operations on images: antialiased resizing, and pooling over windows that are drawn."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from tests.torch.beside_pytorch import Calls, check_function  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = torch.from_numpy(RNG.normal(size=(2, 3, 8, 9)))
VOLUMES = torch.from_numpy(RNG.normal(size=(2, 3, 8, 9, 7)))
DRAWN = torch.from_numpy(RNG.uniform(size=(2, 3, 3)))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(3, 5), (8, 8), (1, 12)])
def test_smooth_sizes(mode, aligned, size):
    check_function(
        lambda x: F.interpolate(x, size, mode=mode, align_corners=aligned, antialias=True),
        IMAGES,
        single=size == (3, 5),
    )


@pytest.mark.parametrize("factor", [0.6, 1.7, (0.3, 1.2)])
@pytest.mark.parametrize("recomputed", [False, True])
def test_smooth_factors(factor, recomputed):
    how = {"scale_factor": factor, "recompute_scale_factor": recomputed, "antialias": True}
    check_function(lambda x: F.interpolate(x, mode="bicubic", **how), IMAGES, single=False)


def test_smooth_integers_are_refused():
    images = (IMAGES * 50).to(torch.uint8)
    smooth = Calls(lambda x: F.interpolate(x, (4, 4), mode="bilinear", antialias=True))
    with pytest.raises(NotImplementedError, match=r"antialias=True rounds uint8 .*: give floats"):
        st.from_torch(smooth, images)(images.numpy())


@pytest.mark.parametrize("window, size", [(2, (3, 4)), ((3, 2), (1, 8))])
def test_fractional_pooling(window, size):
    def pooled(x, samples):
        return F.fractional_max_pool2d(x, window, size, _random_samples=samples)

    check_function(pooled, IMAGES, DRAWN[..., :2], fixed=(1,))
    check_function(pooled, IMAGES[0], DRAWN[:1, :, :2], fixed=(1,), single=False)


@pytest.mark.parametrize("drawn", [-3.07, -0.4, 0.0])
def test_numbers_below_0_are_rounded_as_pytorch_does(drawn):
    samples = torch.full((2, 3, 2), drawn).double()
    check_function(
        lambda x, u: F.fractional_max_pool2d(x, 1, (4, 5), _random_samples=u),
        IMAGES,
        samples,
        fixed=(1,),
    )


def test_a_size_and_factors_that_give_another_are_refused():
    resized = torch.ops.aten._upsample_bilinear2d_aa
    both = Calls(lambda x: resized(x, (3, 3), False, 1.7, 0.9))
    with pytest.raises(NotImplementedError, match=r"the factors \(1.7, 0.9\) give .* one of the"):
        st.from_torch(both, IMAGES.float())(IMAGES.float().numpy())


def test_fractional_pooling_of_volumes():
    def pooled(x, samples):
        return F.fractional_max_pool3d(
            x, (2, 1, 3), (3, 4, 2), _random_samples=samples, return_indices=True
        )

    check_function(lambda *xs: pooled(*xs)[0], VOLUMES, DRAWN, fixed=(1,))
    check_function(lambda *xs: pooled(*xs)[1], VOLUMES, DRAWN, fixed=(0, 1), single=False)


def test_windows_are_drawn_from_the_key():
    pooled = Calls(lambda x: F.fractional_max_pool2d(x, 2, 3))
    x = IMAGES.float()
    ours = st.from_torch(pooled, x)
    found = []
    for seed in (0, 0, 1):
        with st.nn.keys(st.random.key(seed)):
            found.append(np.asarray(ours(x.numpy())))
    assert (found[0] == found[1]).all() and (found[0] != found[2]).any()
    assert np.isin(found[0], x.numpy()).all()
