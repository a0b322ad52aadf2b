"""Sizes on which a module's course depends: right, or refused with the size that was expected."""

import math

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.export import Dim, export  # noqa: E402
from torch.nn import functional as F  # noqa: E402

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


class Of(nn.Module):
    """A function of one tensor, or of several, as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *xs):
        return self.function(*xs)


def rows(n):
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(n))


def agree(model, module, *xs):
    want = module(*xs).detach()
    got = model(*[x.numpy() for x in xs])
    assert got.shape == tuple(want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def in_groups(x):
    """The variance over groups of rows, as in StyleGAN."""
    group = min(x.shape[0], 3)
    return x.reshape(group, -1, 4).var(0, unbiased=False).repeat(group, 1)


def parity(x):
    if x.shape[0] % 2:
        return x * 3
    return x * 2


ASKS = {
    "more than": (lambda x: x * 2 if x.shape[0] > 4 else x * 3, (5, 6, 9, 1), (2, 4)),
    "equal": (lambda x: x * 2 if x.shape[0] == 6 else x * 3, (6,), (1, 5, 12)),
    "not equal": (lambda x: x * 2 if x.shape[0] != 5 else x * 3, (6, 1, 7), (5,)),
    "one": (lambda x: x * 2 if x.shape[0] > 1 else x * 3, (6, 2, 1), ()),
    "parity": (parity, (6, 2, 8, 1), (3, 5)),
    "int": (lambda x: x * int(x.shape[0]), (6,), (1, 5)),
    "len": (lambda x: x * len(x), (6, 1, 5), ()),
    "loop of len": (lambda x: sum([x[i] * i for i in range(len(x))]), (6,), (1, 5)),
    "math": (lambda x: x / math.sqrt(x.shape[0]), (6,), (1, 5)),
    "bits": (lambda x: x * x.shape[0].bit_length(), (6,), (5,)),
    "loop": (lambda x: sum([x[i] * i for i in range(x.shape[0])]), (6,), (1, 5)),
    "rows": (lambda x: torch.stack([row * 2 for row in x]), (6,), (1, 5)),
    "numel": (lambda x: x * 2 if x.numel() >= 20 else x, (5, 6, 1), (2, 4)),
    "halves": (lambda x: x[: x.shape[0] // 2], (6, 5, 1, 2), ()),
    "least": (lambda x: x * min(x.shape[0], 4), (6, 3, 1), ()),
    "power": (lambda x: x * x.shape[0] ** 0.5, (6, 3, 1), ()),
    "rounded": (lambda x: x * round(x.shape[0] / 4), (6, 3, 1), ()),
    "range": (lambda x: torch.arange(x.shape[0]) + x[:, 0], (6, 3, 1), ()),
    "identity": (lambda x: torch.eye(x.shape[0]) @ x, (6, 3, 1), ()),
    "prefix": (lambda x: x[:3], (6, 2, 1), ()),
    "chunks": (lambda x: torch.stack([c.mean(0) for c in x.chunk(3)]), (6, 8, 3, 1), (2, 4)),
    "groups": (in_groups, (6, 3, 12, 1, 2), (5, 8)),
    "squeeze": (lambda x: x[:, :1].squeeze(), (6, 2, 1), ()),
    "squeezed row": (lambda x: x.squeeze(0) * 2, (6, 2, 1), ()),
    "squeezed softmax": (lambda x: x[:, :1].squeeze().softmax(-1), (6, 2, 1), ()),
    "product": (lambda x: x @ x.T, (6, 2, 1), ()),
    "transposed": (lambda x: x.T.reshape(4, -1), (6, 2, 1), ()),
    "distances": (lambda x: torch.cdist(x, x + 9), (6, 1, 26), ()),
    "convolution": (lambda x: F.conv1d(x[:, None], torch.ones(2, 1, 3)), (6, 1, 2), ()),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None]),
        (6, 1, 2),
        (),
    ),
}


@pytest.mark.parametrize("name", ASKS)
def test_what_a_module_asks_of_its_batch(name):
    function, right, refused = ASKS[name]
    module = Of(function)
    model = st.from_torch(module, X)
    for n in right:
        agree(model, module, rows(n))
    for n in refused:
        with pytest.raises(ValueError, match="import the module anew"):
            model(rows(n).numpy())


def test_the_words():
    model = st.from_torch(Of(ASKS["more than"][0]), X)
    with pytest.raises(
        ValueError,
        match=r"Of: the program holds for xs\[0\].shape\[0\] > 4 \(.*test_attempts_constraints.py, "
        r"line \d+, in <lambda>\), and xs\[0\].shape\[0\] is 2: import the module anew",
    ):
        model(rows(2).numpy())
    with pytest.raises(ValueError, match=r"expected the shape \(6, 4\), got \(5, 4\)"):
        st.from_torch(Of(ASKS["int"][0]), X)(rows(5).numpy())
    with pytest.raises(ValueError, match=r"has size 0, and the program holds for one or more"):
        model(rows(0).numpy())


def test_none_at_all():
    module = Of(lambda x: x.mean(0) if x.shape[0] else x.new_zeros(4))
    agree(st.from_torch(module, rows(0)), module, rows(0))


@pytest.mark.parametrize(
    ("function", "y", "right", "refused"),
    [
        (lambda x, y: x + y, 6, ((3, 3), (1, 1)), ((3, 6), (1, 6), (6, 1))),
        (lambda x, y: torch.cat([x, y]), 6, ((3, 3), (3, 5), (1, 4)), ()),
        (lambda x, y: torch.cat([x, x]) + y, 12, ((3, 6), (1, 2)), ((3, 3), (1, 1))),
        (lambda x, y: x if x.shape[0] == y.shape[0] else y, 6, ((3, 3),), ((3, 4),)),
        (lambda x, y: x if x.shape[0] < y.shape[0] else y, 9, ((3, 4), (1, 2)), ((3, 3), (4, 3))),
        (lambda x, y: x * 2 if x.shape[0] + y.shape[0] > 9 else x, 9, ((3, 7),), ((3, 4),)),
    ],
)
def test_two_sizes(function, y, right, refused):
    module = Of(function)
    model = st.from_torch(module, (X, rows(y)))
    for n, m in right:
        agree(model, module, rows(n), rows(m))
    for n, m in refused:
        with pytest.raises(ValueError):
            model(rows(n).numpy(), rows(m).numpy())


def test_train_mode_asks_too():
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model = st.from_torch(net, X, train=True)
    agree(model, net.eval(), rows(1))
    with pytest.raises(ValueError, match=r"shape\[0\] != 1 \(functional.py, .* _verify_batch_size"):
        model.train()(rows(1).numpy())


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        out = self.layer(x).squeeze()
        return torch.sigmoid(out) if x.shape[0] < 9 else out


def test_compiled_differentiated_mapped_and_saved(tmp_path):
    members = [Classifier().double() for _ in range(2)]
    x = X.double()
    with st.config(enable_x64=True):
        model = st.from_torch(members[0], x)
        st.torch.save(tmp_path / "m.safetensors", model)
        again = st.torch.load(tmp_path / "m.safetensors")
        assert again.evaluation_program == model.evaluation_program
        assert again.evaluation_program.single == model.evaluation_program.single is not None
        ensemble = st.Ensemble.from_torch(members, x)
        for n in (1, 5):
            y = rows(n).double()
            want = members[0](y)
            members[0].zero_grad()
            want.sum().backward()
            for one in (model, again):
                np.testing.assert_allclose(st.jit(lambda m, y: m(y))(one, y.numpy()), want.detach())
                slope = st.grad(lambda m, y: m(y).sum())(one, y.numpy()).layer.weight
                np.testing.assert_allclose(slope, members[0].layer.weight.grad)
            both = np.stack([member(y).detach() for member in members])
            np.testing.assert_allclose(ensemble(y.numpy()), both)
        for refusing in (again, st.jit(model), ensemble):
            with pytest.raises(ValueError, match=r"shape\[0\] < 9"):
                refusing(rows(9).double().numpy())


# dynamic_shapes


class Sequences(nn.Module):
    """Attention and a recurrent layer, with a table of 32 positions."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.positions = nn.Parameter(torch.randn(32, 8))
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.recurrent = nn.LSTM(8, 8, batch_first=True)

    def forward(self, tokens):
        n = tokens.shape[1]
        x = self.embedding(tokens) + self.positions[:n]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        return self.recurrent(self.encoder(x, mask, is_causal=True))[0].mean(1)


TOKENS = torch.randint(0, 11, (3, 7))


def tokens(*shape):
    return torch.randint(0, 11, shape, generator=torch.Generator().manual_seed(1))


def test_sequences_of_any_length():
    module = Sequences().eval()
    length = Dim("length", max=32)
    model = st.from_torch(module, TOKENS, dynamic_shapes={"tokens": {0: Dim.AUTO, 1: length}})
    compiled, ensemble = st.jit(lambda m, x: m(x)), st.Ensemble([model, model])
    for shape in ((3, 7), (1, 12), (4, 1), (2, 32)):
        agree(model, module, tokens(*shape))
        agree(lambda x: compiled(model, x), module, tokens(*shape))
        agree(lambda x: ensemble(x)[1], module, tokens(*shape))
    with pytest.raises(ValueError, match=r"tokens.shape\[1\] .*32.*, and tokens.shape\[1\] is 33"):
        model(tokens(2, 33).numpy())
    varying = st.jit(lambda m, x: m(x), dynamic_axes=(None, {1: "n"}))
    for n in (7, 12, 3):
        agree(lambda x: varying(model, x), module, tokens(3, n))


@pytest.mark.parametrize(
    "shapes",
    [
        {"tokens": {0: Dim.DYNAMIC, 1: Dim.AUTO}},
        ({0: Dim.AUTO, 1: Dim.AUTO},),
        {"tokens": [Dim.AUTO, Dim.AUTO]},
    ],
)
def test_forms_of_dynamic_shapes(shapes):
    module = Sequences().eval()
    agree(st.from_torch(module, TOKENS, dynamic_shapes=shapes), module, tokens(2, 9))


class Nested(nn.Module):
    def forward(self, x, options, *, factor=2.0):
        return torch.cat([x, options["y"]], 1) * factor


def test_nested_and_bounded():
    module = WithWeight()
    shapes = {"x": {1: Dim.AUTO}, "options": {"y": {1: Dim("y", min=2, max=9)}}, "factor": None}
    args = X, {"y": rows(6)}
    (model,) = st.Ensemble.from_torch([module], args, {"factor": 3.0}, dynamic_shapes=shapes)
    y = np.ones((6, 3), np.float32)
    assert model(np.ones((6, 9), np.float32), {"y": y}, factor=3.0).shape == (6, 12)
    for n, found in ((1, ">= 2"), (10, "<= 9")):
        with pytest.raises(ValueError, match=rf"options\['y'\].shape\[1\] {found}, and .* is {n}"):
            model(np.ones((6, 9)), {"y": np.ones((6, n))}, factor=3.0)
    with pytest.raises(ValueError, match=r"expected the shape \(6, any\)"):
        model(np.ones((5, 9)), {"y": np.ones((5, 3))}, factor=3.0)
    assert module(*args).shape == (6, 8)


class WithWeight(Nested):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))


def test_sizes_that_are_multiples():
    n = Dim("n")
    halved = Of(lambda y: y.reshape(2, -1, 4).sum(0))
    model = st.from_torch(halved, X, dynamic_shapes={"xs": ({0: 2 * n},)})
    agree(model, halved, rows(10))
    with pytest.raises(ValueError, match=r"axis 0 of xs\[0\] has size 7, and must have 2\*n"):
        model(rows(7).numpy())


def test_a_cache_of_any_length():
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(4, 12)

        def forward(self, x, past):
            q, k, v = self.project(x).chunk(3, -1)
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
            return F.scaled_dot_product_attention(q, k, v), (k, v)

    module, x = Step(), torch.randn(2, 1, 4)
    past = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    shapes = {"x": None, "past": ({1: Dim("n")}, {1: Dim.AUTO})}
    model = st.from_torch(module, (x, past), dynamic_shapes=shapes)
    ours, theirs = [p.numpy() for p in past], past
    for _ in range(3):
        out, theirs = module(x, theirs)
        found, ours = model(x.numpy(), ours)
        np.testing.assert_allclose(found, out.detach(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"axis 1 of past\[1\] has size 4, and past\[0\]"):
        model(x.numpy(), (np.ones((2, 3, 4)), np.ones((2, 4, 4))))


def test_what_dynamic_shapes_cannot_be():
    with pytest.raises(TypeError, match="give it without dynamic_batch"):
        st.from_torch(Of(torch.sin), X, dynamic_batch=False, dynamic_shapes=({0: Dim.AUTO},))
    with pytest.raises(Exception, match="specialized it to be a constant"):
        st.from_torch(Of(ASKS["int"][0]), X, dynamic_shapes=(({0: Dim("n")},),))
    with pytest.raises(NotImplementedError, match=r"lets the number .* vary"):
        shapes = ((None, Dim.DYNAMIC),)
        st.from_torch(Of(lambda x, k: x * k), (X, 3), dynamic_shapes=shapes)


def test_exported_programs_keep_theirs(tmp_path):
    shapes = {"xs": ({0: Dim.AUTO},)}
    exported = export(Of(parity), (X,), dynamic_shapes=shapes)
    torch.export.save(exported, tmp_path / "m.pt2")
    for program in (exported, torch.export.load(tmp_path / "m.pt2")):
        model = st.from_torch(program)
        np.testing.assert_array_equal(model(rows(4).numpy()), rows(4) * 2)
        with pytest.raises(ValueError, match=r"\(argument_0.shape\[0\] % 2\) == 0"):
            model(rows(3).numpy())
