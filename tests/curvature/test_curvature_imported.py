"""Curvature of modules that come from PyTorch."""

import numpy as np
import pytest

import stretto as st
from stretto.curvature import ggn

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _double():
    torch.manual_seed(0)
    with st.enable_x64():
        yield


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 2, groups=2),
        torch.nn.Tanh(),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 3),
    ).double()


def test_factors_and_whole_are_those_of_the_same_module_here():
    theirs, x = network().eval(), np.random.default_rng(0).normal(size=(5, 2, 3, 3))
    imported = st.from_torch(theirs, torch.tensor(x)).eval()
    ours = st.nn.Sequential(
        st.nn.Conv2d(2, 4, 2, groups=2), st.nn.Tanh(), st.nn.Flatten(), st.nn.Linear(16, 3)
    )
    ours = st.tree.cast(ours, "float64").eval()
    ours.load_state_dict({n: v.numpy() for n, v in theirs.state_dict().items()})
    one, two = ggn(imported, x), ggn(ours, x)
    assert one.names == two.names
    np.testing.assert_allclose(one.dense(), two.dense(), atol=1e-13)
    np.testing.assert_allclose(one.kron().dense(), two.kron().dense(), atol=1e-13)


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_of_one_position_is_exact(heads):
    layer = torch.nn.TransformerEncoderLayer(4, heads, 5, batch_first=True).double().eval()
    x = np.random.default_rng(0).normal(size=(1, 1, 4))
    imported = st.from_torch(layer, torch.tensor(x)).eval()
    curvature = ggn(imported, x, "gaussian")
    kron, whole, start = curvature.kron(), np.asarray(curvature.dense()), 0
    for n in curvature.names:
        block = np.asarray(kron.factors[n].dense())
        at = slice(start, start + len(block))
        start += len(block)
        np.testing.assert_allclose(block, whole[at, at], atol=1e-12, err_msg=n)


def test_train_mode_is_refused():
    imported = st.from_torch(network(), torch.zeros(1, 2, 3, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="runs its program of train mode"):
        ggn(imported.train(), np.zeros((1, 2, 3, 3)))
