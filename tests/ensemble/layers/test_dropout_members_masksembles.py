"""Masksembles: the masks' numbers, and that each member sees its own."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble.layers import (
    Masksembles1d,
    Masksembles2d,
    dropout_members,
    masksembles_masks,
    repeat_members,
    split_members,
)

KEY = st.random.PRNGKey(0)


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize(("channels", "members"), [(10, 1), (16, 4), (63, 3), (512, 8)])
def test_masks(channels, members, scale):
    masks = np.asarray(masksembles_masks(channels, members, scale, key=KEY))
    assert masks.shape == (members, channels) and masks.dtype == np.float32
    assert set(np.unique(masks)) <= {0, 1}
    assert masks.any(0).all()  # each channel is used
    sizes = masks.sum(1)
    assert (sizes == sizes[0]).all()
    used = scale * (1 - (1 - 1 / scale) ** members)
    assert sizes[0] == np.ceil(round(channels / used, 6))
    if scale == 1 or members == 1:
        assert masks.all()
    elif channels > 100:
        shared = (masks[0] * masks[1]).sum() / sizes[0]
        assert abs(shared - 1 / scale) < 0.1


def test_keys_decide():
    one, two = (masksembles_masks(32, 4, 2.0, key=st.random.PRNGKey(i)) for i in (1, 2))
    assert (np.asarray(one) != np.asarray(two)).any()
    np.testing.assert_array_equal(one, masksembles_masks(32, 4, 2.0, key=st.random.PRNGKey(1)))
    with st.nn.keys(KEY):
        ambient = masksembles_masks(32, 4, 2.0)
    np.testing.assert_array_equal(
        ambient, masksembles_masks(32, 4, 2.0, key=st.random.fold_in(KEY, 0))
    )


def test_layers():
    layer = Masksembles1d(16, 4, 2.0, key=KEY)
    assert list(layer.state_dict()) == ["masks"] and not list(layer.parameters())
    x = st.random.normal(KEY, (4, 5, 16))
    expected = x * layer.masks[:, None]
    np.testing.assert_array_equal(layer(x), expected)
    np.testing.assert_array_equal(split_members(layer(x.reshape(20, 16)), 4), expected)
    np.testing.assert_array_equal(st.jit(lambda m, x: m(x))(layer, x), expected)
    slopes = st.grad(lambda x: layer(x).sum())(x)
    np.testing.assert_array_equal(slopes, np.broadcast_to(layer.masks[:, None], x.shape))
    images = st.random.normal(KEY, (2, 16, 3, 3))
    two = Masksembles2d(16, 4, 2.0, key=KEY, dtype=snp.bfloat16)
    assert two.masks.dtype == snp.bfloat16
    out = split_members(two(repeat_members(images, 4)), 4)
    for i in range(4):
        np.testing.assert_array_equal(out[i], images * two.masks[i][:, None, None])
    np.testing.assert_array_equal(two(snp.stack([images] * 4)), out)
    assert repr(layer) == "Masksembles1d(num_estimators=4, scale=2.0)"
    stacked = st.stack([layer, Masksembles1d(16, 4, 2.0, key=st.random.PRNGKey(3))])
    np.testing.assert_array_equal(st.vmap(lambda m: m(x))(stacked)[0], expected)


def test_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"scale must be between 1 and 100, got 0\.5"):
        masksembles_masks(8, 4, 0.5)
    with pytest.raises(ValueError, match="scale must be between 1 and 100, got nan"):
        masksembles_masks(8, 4, float("nan"))
    with pytest.raises(ValueError, match="channels must be a positive integer"):
        masksembles_masks(0, 4, 2.0)
    with monkeypatch.context() as m:
        m.setattr(dropout_members, "_TRIES", 1)
        with pytest.raises(ValueError, match="found no 8 masks of 94 ones that use just 512 chann"):
            masksembles_masks(512, 8, 9.0, key=KEY)
    with pytest.raises(st.errors.TracedValueError, match="masks are drawn once, outside transform"):
        st.vmap(lambda k: Masksembles1d(8, 4, 2.0, key=k).masks)(st.random.split(KEY))
    with pytest.raises(ValueError, match=r"Masksembles1d.*with 8 channels, got"):
        Masksembles1d(8, 4, 2.0, key=KEY)(np.ones((4, 2, 9)))
    with pytest.raises(ValueError, match="repeat_members"):
        Masksembles1d(8, 4, 2.0, key=KEY)(np.ones((5, 8)))
