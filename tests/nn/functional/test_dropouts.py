"""Dropout: shares, means, whole channels, keys, derivatives, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F

KEY = st.random.PRNGKey(0)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_shares(p, wrap):
    x = snp.ones((200, 300))
    out = np.asarray(wrap(lambda x, key: F.dropout(x, p, key=key))(x, KEY))
    kept = out != 0
    np.testing.assert_allclose(out[kept], 1 / (1 - p), rtol=1e-6)
    # Five standard deviations of a share of 60,000.
    assert abs(kept.mean() - (1 - p)) < 5 * np.sqrt(p * (1 - p) / kept.size)
    assert kept.any(1).all() and len(np.unique(kept, axis=0)) == 200


def test_nothing_to_do():
    x = snp.arange(3.0)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0]
    for f in (F.alpha_dropout, F.feature_alpha_dropout):
        assert f(snp.ones((2, 2)), 0.5).tolist() == [[1, 1], [1, 1]]
        assert f(snp.ones((2, 2)), 1.0, training=True).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    "f, axes", [(F.dropout1d, 1), (F.dropout2d, 2), (F.dropout3d, 3)], ids=["1d", "2d", "3d"]
)
def test_whole_channels(f, axes):
    for lead in ((40, 50), (300,)):
        out = np.asarray(f(snp.ones((*lead, *(2,) * axes)), 0.3, key=KEY)).reshape(*lead, -1)
        assert (out == out[..., :1]).all()
        assert abs((out[..., 0] == 0).mean() - 0.3) < 0.15
    with pytest.raises(ValueError, match=rf"dropout{axes}d: expected an input \(N, C, .* float32"):
        f(snp.ones((2,) * axes), key=KEY)


def test_derivative_is_the_mask():
    x = snp.arange(1.0, 101.0)
    out, slope = st.jvp(lambda x: F.dropout(x, 0.3, key=KEY), (x,), (snp.ones(100),))
    np.testing.assert_allclose(slope, out / x, rtol=1e-6)
    back = st.grad(lambda x: F.dropout(x, 0.3, key=KEY).sum())(x)
    np.testing.assert_allclose(back, slope)


def test_keys():
    x = snp.ones(100)
    with st.nn.keys(KEY):
        one, two = F.dropout(x), F.dropout(x)
    with st.nn.keys(KEY):
        again = F.dropout(x)
    assert (one == again).all() and (one != two).any()
    each = st.vmap(lambda key: F.dropout(x, key=key))(st.random.split(KEY, 3))
    assert len(np.unique(each, axis=0)) == 3
    np.testing.assert_array_equal(each[1], F.dropout(x, key=st.random.split(KEY, 3)[1]))


def test_missing_key_names_the_ways_out():
    with pytest.raises(RuntimeError, match=r"dropout draws random numbers.*[Pp]ass key="):
        st.jit(F.dropout)(snp.ones(3))
    with pytest.raises(RuntimeError, match=r"dropout draws random numbers.*randomness"):
        st.vmap(F.dropout)(snp.ones(3))


def test_alpha_keeps_mean_and_variance():
    one, two = st.random.split(KEY)
    x = st.random.normal(one, (400, 500))
    out = np.asarray(F.alpha_dropout(x, 0.2, training=True, key=two))
    assert abs(out.mean()) < 0.01 and abs(out.std() - 1) < 0.01
    # a = ((1 - p) (1 + p floor²))^(-1/2), and the value of a dropped element is a (1 - p) floor.
    floor = -1.0507009873554805 * 1.6732632423543772
    a = 1 / np.sqrt(0.8 * (1 + 0.2 * floor**2))
    dropped = np.isclose(out, a * 0.8 * floor, rtol=1e-5)
    assert abs(dropped.mean() - 0.2) < 0.01
    channels = np.asarray(F.feature_alpha_dropout(snp.zeros((30, 40, 3)), 0.2, True, key=one))
    assert (channels == channels[..., :1]).all() and len(np.unique(channels)) == 2


def test_types():
    assert F.dropout(snp.ones(4, snp.bfloat16), key=KEY).dtype == snp.bfloat16
    assert F.dropout(snp.ones(4, snp.int32), key=KEY).dtype == snp.float32


def test_messages():
    x = snp.ones((2, 3))
    with pytest.raises(ValueError, match=r"dropout: p must be from 0 to 1, got 1.5"):
        F.dropout(x, 1.5)
    with pytest.raises(TypeError, match="dropout1d: p must be a Python number"):
        F.dropout1d(x, "half")
    with pytest.raises(ValueError, match="feature_alpha_dropout: expected an input"):
        F.feature_alpha_dropout(snp.ones(3), training=True, key=KEY)
    with pytest.raises(TypeError, match="expected a key"):
        F.dropout(x, key=snp.ones(3))
