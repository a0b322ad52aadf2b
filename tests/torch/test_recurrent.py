"""Recurrent layers of any length."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.export import Dim  # noqa: E402

from stretto.torch.recurrent import not_unrolled  # noqa: E402


@pytest.mark.parametrize(
    "layer",
    [
        nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True),
        nn.LSTM(4, 5, proj_size=3),
        nn.GRU(4, 5, batch_first=True),
        nn.RNN(4, 5, nonlinearity="relu", bidirectional=True),
        nn.RNN(4, 5),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_any_length(layer):
    module = layer.double()
    x = torch.randn(3, 7, 4, dtype=torch.float64)
    with st.config(enable_x64=True):
        model = st.from_torch(module, x, dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
        for shape in ((3, 7, 4), (1, 12, 4), (5, 1, 4)):
            y = torch.randn(shape, dtype=torch.float64)
            want, got = module(y), model(y.numpy())
            np.testing.assert_allclose(got[0], want[0].detach(), atol=1e-12)
            for a, b in zip(st.tree.leaves(got[1]), torch.utils._pytree.tree_leaves(want[1])):
                np.testing.assert_allclose(a, b.detach(), atol=1e-12)


@pytest.mark.filterwarnings("ignore")  # PyTorch's, about its own internals
def test_pytorch_is_as_it_was():
    layer, x = nn.LSTM(4, 5), torch.randn(7, 3, 4)
    before = layer(x)[0]
    with pytest.raises(KeyError), not_unrolled():
        raise KeyError
    unrolled = torch.export.export(layer, (x,)).run_decompositions()
    assert len(unrolled.graph.nodes) > 50
    np.testing.assert_array_equal(layer(x)[0].detach(), before.detach())
