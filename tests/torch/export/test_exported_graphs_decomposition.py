"""Programs in operations of the table: what is decomposed, and what need not be."""

import warnings

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch._higher_order_ops import effects  # noqa: E402
from torch.nn.utils import parametrizations, spectral_norm, weight_norm  # noqa: E402

from stretto.torch.export import capture  # noqa: E402
from stretto.torch.export.exported_graphs import decomposed  # noqa: E402
from tests.torch.beside import check_module  # noqa: E402


def operations(module, *args):
    return [x.op for x in st.from_torch(module, args).evaluation_program.graph.nodes]


class Steps(nn.Module):
    """A loop over steps, unrolled: cells above one another, and their outputs."""

    def __init__(self, kind):
        super().__init__()
        self.cells = nn.ModuleList([kind(4, 4), kind(4, 4)])

    def forward(self, x):
        zeros = x.new_zeros(x.shape[0], 4)
        pair = isinstance(self.cells[0], nn.LSTMCell)
        states, outs = [(zeros, zeros) if pair else zeros for _ in self.cells], []
        for t in range(3):
            y = x[:, t].contiguous()
            for k, cell in enumerate(self.cells):
                states[k] = cell(y, states[k])
                y = states[k][0] if pair else states[k]
            outs += y.chunk(3, -1)
        return torch.cat(outs, -1)


@pytest.mark.parametrize(
    "kind, op",
    [
        (nn.LSTMCell, "aten.lstm_cell.default"),
        (nn.GRUCell, "aten.gru_cell.default"),
        (nn.RNNCell, "aten.rnn_tanh_cell.default"),
        (lambda n, m: nn.RNNCell(n, m, nonlinearity="relu"), "aten.rnn_relu_cell.default"),
    ],
)
def test_unrolled_loops(kind, op):
    torch.manual_seed(0)
    modules = [Steps(kind) for _ in range(2)]
    check_module(modules, (torch.randn(3, 3, 4).double(),), [(torch.randn(5, 3, 4).double(),)])
    found = operations(modules[0].float(), torch.randn(3, 3, 4))
    assert found.count(op) == 6 and "aten.chunk.default" in found


def test_what_writes_in_place_is_decomposed():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            h = self.linear(x)
            h.view(-1).mul_(2)  # nothing reads its result
            return h + nn.functional.relu(h, inplace=True)

    torch.manual_seed(0)
    check_module([InPlace()], (torch.randn(3, 4).double(),), [(torch.randn(2, 4).double(),)])
    assert not [op for op in operations(InPlace(), torch.ones(3, 4)) if "_." in op]


def test_decomposed_or_not_is_the_same():
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True).eval()
    example = torch.ones(3, 5, 8), torch.ones(3, 4, 8)
    exported = torch.export.export(nn.Linear(8, 4), example[:1], strict=False)
    assert decomposed(exported, capture._decompositions) is exported
    exported = torch.export.export(layer, example, strict=False)
    with warnings.catch_warnings(action="ignore"):
        parts = st.from_torch(exported.run_decompositions())
    whole = st.from_torch(layer, example)
    x, y = np.random.default_rng(0).normal(size=(2, 3, 5, 8)).astype(np.float32)
    np.testing.assert_allclose(whole(x, y[:, :4]), parts(x, y[:, :4]), rtol=1e-4, atol=1e-5)


def test_gradients_stop_where_they_do_in_pytorch():
    class Stops(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            with torch.no_grad():
                still = self.linear(x).sin()
            return still * self.linear(x)

    torch.manual_seed(0)
    check_module([Stops()], (torch.randn(3, 4).double(),))


class Normalized(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.linear = make()

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="cayley"),
        lambda: parametrizations.orthogonal(nn.Linear(4, 2), orthogonal_map="cayley"),
        lambda: parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="matrix_exp"),
        lambda: parametrizations.weight_norm(nn.Linear(4, 2)),
        lambda: parametrizations.spectral_norm(nn.Linear(4, 2)),
        lambda: weight_norm(nn.Linear(4, 2)),
        lambda: spectral_norm(nn.Linear(4, 2)),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_parametrizations(make):
    torch.manual_seed(0)
    modules = [Normalized(make) for _ in range(2)]
    check_module(modules, (torch.randn(3, 4).double(),), [(torch.randn(5, 4).double(),)])


def test_effects_are_refused():
    class Shouts(nn.Module):
        def forward(self, x):
            torch.ops.stretto_tests.shout(x)
            return x

    with torch.library._scoped_library("stretto_tests", "FRAGMENT") as library:
        library.define("shout(Tensor x) -> Tensor")
        library.impl("shout", lambda x: x.clone(), "CompositeExplicitAutograd")
        operation = torch.ops.stretto_tests.shout.default
        handle = effects._register_effectful_op(operation, effects._EffectType.ORDERED)
        try:
            with pytest.raises(NotImplementedError, match=r"shout.default, in .* has an effect be"):
                st.from_torch(Shouts(), torch.ones(3))
        finally:
            handle.destroy()
