"""What a module writes to the data of its buffers is what the imported one gives back."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.mark.parametrize(
    "write",
    [
        lambda m, x: m.e.data.mul_(0.9),
        lambda m, x: m.e.data.copy_(m.e * 0.9 + x.mean(0)),
        lambda m, x: m.e.data.__setitem__(0, 5.0),
        lambda m, x: m.e.data[:2].mul_(0.5),
        lambda m, x: m.e.data.lerp_(x.mean(0), 0.1),
        lambda m, x: setattr(m.e, "data", m.e.data * 0.9),
        lambda m, x: m.e.detach().mul_(0.9),
    ],
)
def test_writes_to_the_data_of_a_buffer(write):
    class Averages(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("e", torch.ones(4))

        def forward(self, x):
            write(self, x)
            return x * self.e

    module, x = Averages(), torch.randn(3, 4)
    _, after = st.nn.stateful_call(st.from_torch(module, x), x.numpy())
    out, after = st.nn.stateful_call(after, x.numpy())
    module(x)
    np.testing.assert_allclose(out, module(x), rtol=1e-5)
    np.testing.assert_allclose(after.e, module.e, rtol=1e-5)
