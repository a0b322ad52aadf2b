"""Recurrent layers of any length, and packed sequences."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.export import Dim  # noqa: E402
from torch.nn.utils.rnn import (  # noqa: E402
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)

from stretto.torch.trace.substitutes import not_unrolled  # noqa: E402
from tests.torch.beside import check_module  # noqa: E402

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(4, 5, 3)))
SORTED = torch.tensor([5, 3, 3, 1])
MIXED = torch.tensor([2, 5, 1, 4])
SHORT = torch.tensor([4, 3, 1, 1])
MORE = [(X[:2], SORTED[:2])]


class Net(nn.Module):
    """A recurrent network of packed sequences; ``read`` takes what it gives apart."""

    def __init__(self, kind=nn.LSTM, read=None, **options):
        super().__init__()
        self.batch_first = options.pop("batch_first", True)
        self.sorted = options.pop("enforce_sorted", True)
        self.total = options.pop("total", True)
        self.rnn = kind(3, 4, batch_first=self.batch_first, **options)
        self.read = read

    def forward(self, x, lengths):
        x = x if self.batch_first else x.transpose(0, 1)
        steps = x.shape[1 if self.batch_first else 0]
        packed = pack_padded_sequence(
            x, lengths, batch_first=self.batch_first, enforce_sorted=self.sorted
        )
        if self.read is not None:
            return self.read(self.rnn, packed, lengths)
        out, last = self.rnn(packed)
        out, sizes = pad_packed_sequence(
            out, self.batch_first, 0.5, total_length=steps if self.total else None
        )
        last = last if isinstance(last, tuple) else (last,)
        return (out, sizes, *last)


def nets(*args, **options):
    torch.manual_seed(0)
    return [Net(*args, **options) for _ in range(3)]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_kinds(kind, bidirectional):
    modules = nets(kind, num_layers=2, bidirectional=bidirectional)
    check_module(modules, (X, SORTED), MORE)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_first": False},
        {"bias": False},
        {"proj_size": 2, "num_layers": 2, "bidirectional": True},
    ],
    ids=str,
)
def test_options(options):
    check_module(nets(**options), (X, SORTED), MORE)


def test_lengths_in_any_order():
    modules = nets(nn.GRU, enforce_sorted=False, bidirectional=True)
    check_module(modules, (X, MIXED), [(X[:3], torch.tensor([1, 5, 2])), (X, SORTED)])


def test_rectangles_that_nothing_fills():
    """With ``total_length`` the size is known; without it, it is the longest's."""
    check_module(nets(), (X, SHORT), MORE)
    check_module(nets(total=False), (X, SHORT), [(X, SORTED)], compiled=False)
    ours = st.from_torch(nets(total=False)[0], (X.float(), SHORT))
    with pytest.raises(st.errors.SizeError, match="total_length"):
        st.jit(ours)(X.float().numpy(), SHORT.numpy())


def mean_of_valid(rnn, packed, lengths):
    out, _ = rnn(packed)
    out, sizes = pad_packed_sequence(out, batch_first=True)
    mask = torch.arange(out.shape[1])[None] < sizes[:, None]
    return (out * mask[..., None]).sum(1) / sizes[:, None]


def attention(rnn, packed, lengths):
    out, (h, _) = rnn(packed)
    out, sizes = pad_packed_sequence(out, batch_first=True)
    mask = torch.arange(out.shape[1])[None] < sizes[:, None]
    scores = (out * h[-1][:, None]).sum(-1).masked_fill(~mask, -torch.inf)
    return (torch.softmax(scores, 1)[..., None] * out).sum(1)


def of_elements(rnn, packed, lengths):
    doubled = PackedSequence(packed.data.sin(), *packed[1:])
    out, _ = rnn(doubled)
    return out.data.square().mean() + packed.data.sum()


def with_state(rnn, packed, lengths):
    h = lengths[None, :, None].to(packed.data) * torch.ones(1, 1, 4, dtype=packed.data.dtype)
    return rnn(packed, (h, h + 1))[1]


def last_outputs(rnn, packed, lengths):
    out, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)
    index = (lengths - 1)[:, None, None].expand(-1, 1, out.shape[-1])
    return out.gather(1, index).squeeze(1)


@pytest.mark.parametrize(
    "read",
    [mean_of_valid, attention, of_elements, with_state, last_outputs],
    ids=lambda f: f.__name__,
)
def test_what_is_made_of_them(read):
    check_module(nets(read=read), (X, SHORT), MORE)


def test_losses_of_elements():
    """Two packed sequences of the same lengths have one size."""

    class Captions(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 6)

        def forward(self, x, targets, lengths):
            out, _ = self.rnn(pack_padded_sequence(x, lengths, batch_first=True))
            wanted = pack_padded_sequence(targets, lengths, batch_first=True)
            return nn.functional.cross_entropy(self.head(out.data), wanted.data)

    targets = torch.from_numpy(RNG.integers(0, 6, size=(4, 5)))
    check_module([Captions() for _ in range(3)], (X, targets, SORTED))


def test_lengths_that_cannot_be_packed():
    ours = st.from_torch(nets()[0].float(), (X.float(), SORTED))
    x = X.float().numpy()
    with pytest.raises(ValueError, match=r"must be sorted, .*enforce_sorted=False"):
        ours(x, MIXED.numpy())
    with pytest.raises(ValueError, match=r"from 1 to the 5 steps .* got \[5, 3, 3, 0\]"):
        ours(x, np.array([5, 3, 3, 0]))


def test_packed_sequences_from_outside():
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(3, 4, batch_first=True)

        def forward(self, data, sizes):
            return self.rnn(PackedSequence(data, sizes))[1]

    packed = pack_padded_sequence(X.float(), SORTED, batch_first=True)
    with pytest.raises(NotImplementedError, match="pass the rectangle and the lengths"):
        st.from_torch(Takes(), (packed.data, packed.batch_sizes))


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
