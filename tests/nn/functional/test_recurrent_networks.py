"""What recurrent networks share: derivatives, one product, dropout, no steps, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.functional.recurrent_weights import weights


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_members_and_derivatives(kind):
    x = snp.array(np.random.default_rng(1).normal(size=(5, 4, 2)).astype("f"))
    members = [weights(kind, seed) for seed in range(3)]

    def loss(params, x):
        return (getattr(F, kind)(x, None, params)[0] ** 2).sum()

    got = st.jit(st.vmap(st.grad(loss), in_axes=(0, None)))(st.stack(members), x)
    for i, params in enumerate(members):
        for g, w in zip(got, st.grad(loss)(params, x)):
            np.testing.assert_allclose(g[i], w, rtol=1e-3, atol=1e-4)


def test_the_input_is_one_product_outside_the_loop():
    text = (
        st.jit(lambda x: F.lstm(x, None, weights("lstm"))[0]).lower(snp.ones((7, 4, 2))).as_text()
    )
    assert text.count("stablehlo.dot_general") == 2
    assert "tensor<7x4x12xf32>" in text


def test_dropout_between_layers():
    x, key = snp.ones((6, 50, 2)), st.random.PRNGKey(0)
    params = weights("gru") + weights("gru", 1, 3)
    f = lambda **settings: F.gru(x, None, params, num_layers=2, **settings)[0]
    plain = f()
    np.testing.assert_array_equal(f(dropout=0.5), plain)
    one = f(dropout=0.5, train=True, key=key)
    assert (one != plain).any() and len(np.unique(one[0], axis=0)) > 4
    np.testing.assert_array_equal(f(dropout=0.5, train=True, key=key), one)
    single = F.gru(x, None, params[:4], dropout=0.5, train=True)[0]
    np.testing.assert_array_equal(single, F.gru(x, None, params[:4])[0])
    with pytest.raises(RuntimeError, match="gru draws random numbers"):
        st.jit(lambda: f(dropout=0.5, train=True))()


def test_no_steps_and_types():
    out, h = F.gru(snp.ones((0, 4, 2)), snp.ones((1, 4, 3)), weights("gru"))
    assert out.shape == (0, 4, 3) and (h == 1).all()
    narrow = [w.astype(snp.bfloat16) for w in weights("lstm")]
    assert F.lstm(snp.ones((2, 2), snp.bfloat16), None, narrow)[2].dtype == snp.bfloat16


def test_messages():
    x, params = snp.ones((5, 4, 2)), weights("lstm")
    with pytest.raises(ValueError, match=r"lstm: expected input \(length, batch, features\) or"):
        F.lstm(snp.ones(2), None, params)
    with pytest.raises(
        ValueError, match=r"expected weight_ih of shape \(12, 5\) for input float32"
    ):
        F.lstm(snp.ones((5, 4, 5)), None, params)
    with pytest.raises(ValueError, match="expected 4 weights for each of 2 layers and directions"):
        F.lstm(x, None, params, num_layers=2)
    with pytest.raises(ValueError, match=r"lstm: expected hx to be a pair \(h, c\), got 1 arrays"):
        F.lstm(x, snp.ones((1, 4, 3)), params)
    with pytest.raises(
        ValueError, match=r"gru: expected h of shape \(1, 4, 3\), got float32\[4,3\]"
    ):
        F.gru(x, snp.ones((4, 3)), weights("gru"))
    with pytest.raises(ValueError, match=r"gru_cell: expected input \(batch, features\)"):
        F.gru_cell(x, None, *weights("gru"))
    with pytest.raises(ValueError, match="dropout must be from 0 to 1, got 2"):
        F.lstm(x, None, params * 2, num_layers=2, dropout=2, train=True)
