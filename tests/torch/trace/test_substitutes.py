"""What PyTorch cannot export is replaced while a module is traced."""

import contextlib
import io

import numpy as np
import pytest

import stretto as st
from stretto.ensemble import update_batch_norm

torch = pytest.importorskip("torch")
from torch import distributions as D  # noqa: E402 (only where PyTorch is)
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch._subclasses import fake_impls  # noqa: E402 (only where PyTorch is)

from stretto.torch.trace import substitutes  # noqa: E402
from stretto.torch.trace.substitutes import counting, traceable  # noqa: E402
from tests.torch.beside import check_module  # noqa: E402
from tests.torch.beside_pytorch import Calls  # noqa: E402

RNG = np.random.default_rng(0)
A = torch.from_numpy(RNG.uniform(0.5, 1.5, size=(4, 3)))
B = torch.from_numpy(RNG.uniform(0.5, 1.5, size=(4, 3)))


class Draws(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, a, b):
        return self.inner(a, b)


class Scores(nn.Module):
    """Densities, entropy and divergence, with parameters of its own."""

    def __init__(self, of, value):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3).exp())
        self.of, self.value = of, value

    def forward(self, a, b):
        p, q = self.of(a * self.w, b), self.of(b, a + self.w)
        out = [p.log_prob(self.value(a))]
        with contextlib.suppress(NotImplementedError):
            out.append(p.entropy())
        with contextlib.suppress(NotImplementedError):
            out.append(D.kl_divergence(p, q))
        return tuple(out)


def real(a):
    return a * 1.5


def whole(a):
    return torch.floor(a * 2)


def part(a):
    return a / 3


def share(a):
    return a / a.sum(-1, keepdim=True)


def matrix(a):
    return a.T @ a + torch.eye(3, dtype=a.dtype)


SCORES = {
    "Normal": (D.Normal, real),
    "Laplace": (D.Laplace, real),
    "Wishart": (
        lambda a, b: D.Wishart(torch.tensor(5.0, dtype=a.dtype), matrix(a)),
        lambda a: matrix(a + 1),
    ),
    "Gumbel": (D.Gumbel, real),
    "Cauchy": (D.Cauchy, real),
    "Gamma": (D.Gamma, real),
    "StudentT": (lambda a, b: D.StudentT(a + 2, a, b), real),
    "LogNormal": (D.LogNormal, real),
    "Exponential": (lambda a, b: D.Exponential(a), real),
    "Beta": (D.Beta, part),
    "Dirichlet": (lambda a, b: D.Dirichlet(a), share),
    "Poisson": (lambda a, b: D.Poisson(a), whole),
    "Geometric": (lambda a, b: D.Geometric(torch.sigmoid(a)), whole),
    "Bernoulli": (lambda a, b: D.Bernoulli(logits=a), lambda a: (a > 1).to(a)),
    "Categorical": (lambda a, b: D.Categorical(logits=a), lambda a: a.argmax(-1)),
    "Multinomial": (lambda a, b: D.Multinomial(2, logits=a), lambda a: torch.tensor([1.0, 0, 1])),
    "MultivariateNormal": (
        lambda a, b: D.MultivariateNormal(a, scale_tril=torch.diag_embed(b)),
        real,
    ),
    "Independent": (lambda a, b: D.Independent(D.Normal(a, b), 1), real),
    "Mixture": (
        lambda a, b: D.MixtureSameFamily(D.Categorical(a), D.Normal(a, b)),
        lambda a: a[:, 0],
    ),
    "NegativeBinomial": (lambda a, b: D.NegativeBinomial(a, torch.sigmoid(b)), whole),
    "VonMises": (D.VonMises, real),
}


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("name", SCORES)
def test_densities(name):
    of, value = SCORES[name]
    if name == "Multinomial":  # PyTorch cannot trace its entropy
        of = lambda a, b: _WithoutEntropy(2, logits=a)
    torch.manual_seed(0)
    check_module([Scores(of, value) for _ in range(3)], (A, B), [(A[:2], B[:2])])


class _WithoutEntropy(D.Multinomial):
    def entropy(self):
        raise NotImplementedError


N = 100_000
DRAWS = {
    "Normal": D.Normal,
    "Gamma": D.Gamma,
    "Beta": D.Beta,
    "Dirichlet": lambda a, b: D.Dirichlet(a),
    "StudentT": lambda a, b: D.StudentT(a + 5, a, b),
    "Laplace": D.Laplace,
    "Gumbel": D.Gumbel,
    "Exponential": lambda a, b: D.Exponential(a),
    "LogNormal": lambda a, b: D.LogNormal(a / 3, b / 3),
    "Uniform": lambda a, b: D.Uniform(-a, b),
    "Poisson": lambda a, b: D.Poisson(a * 3),
    "Geometric": lambda a, b: D.Geometric(a / 2),
    "Bernoulli": lambda a, b: D.Bernoulli(a / 2),
    "Binomial": lambda a, b: D.Binomial(10, a / 2),
    "NegativeBinomial": lambda a, b: D.NegativeBinomial(a * 3, b / 3),
    "OneHotCategorical": lambda a, b: D.OneHotCategorical(a),
    "Multinomial": lambda a, b: D.Multinomial(5, a),
    "Wishart": lambda a, b: D.Wishart(torch.tensor(5.0), torch.diag_embed(a) + 0.2),
    "MultivariateNormal": lambda a, b: D.MultivariateNormal(
        a, scale_tril=torch.diag_embed(b) + torch.tril(torch.ones(3, 3), -1) / 3
    ),
}


def imported(inner, *args):
    with contextlib.redirect_stderr(io.StringIO()):
        return st.from_torch(Draws(inner), args)


def drawn(module, *args, seed=0):
    with st.nn.keys(st.random.key(seed)):
        return np.asarray(module(*args))


def check_moments(x, mean, variance):
    """Means within five standard errors; variances, whose errors hang on tails, within 5 %."""
    mean, variance = mean.numpy(), variance.numpy()
    assert x.shape == (N, *mean.shape)
    error = 5 * np.sqrt(variance / N)
    assert (np.abs(x.mean(0) - mean) <= error).all()
    np.testing.assert_allclose(x.var(0), variance, rtol=0.05)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("method", ["sample", "rsample"])
def test_moments_of_draws(name, method):
    of = DRAWS[name]
    a, b = A[0].float(), B[0].float()
    theirs = of(a, b)
    if method == "rsample" and not theirs.has_rsample:
        with pytest.raises(NotImplementedError):
            theirs.rsample()
        return
    ours = imported(lambda a, b: getattr(of(a, b), method)((N,)), a, b)
    x = drawn(ours, a.numpy(), b.numpy())
    check_moments(x, theirs.mean, theirs.variance)
    compiled = st.jit(lambda key, a, b: _with_key(ours, key, a, b))
    y = np.asarray(compiled(st.random.key(1), a.numpy(), b.numpy()))
    check_moments(y, theirs.mean, theirs.variance)
    assert (x != y).any()


def test_angles_are_not_drawn():
    with pytest.raises(NotImplementedError, match="draw the angles outside of forward"):
        imported(lambda a, b: D.VonMises(a, b).sample(), A, B)


def _with_key(module, key, *args):
    with st.nn.keys(key):
        return module(*args)


def test_categories():
    a = torch.tensor([[0.5, 0.0, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]])
    ours = imported(lambda a, b: D.Categorical(a).sample((N,)), a, a)
    x = drawn(ours, a.numpy(), a.numpy())
    assert x.shape == (N, 2) and x.dtype.kind == "i"
    for k in range(2):
        shares = np.bincount(x[:, k], minlength=4) / N
        np.testing.assert_allclose(shares, a[k], atol=0.01)
    assert not (x[:, 0] == 1).any()


def test_multinomial_without_replacement():
    """In turn: the second is drawn in proportion to what the first left."""
    weights = torch.tensor([0.5, 0.3, 0.2]).expand(N, 3)
    ours = imported(lambda a, b: torch.multinomial(a, 2), weights, weights)
    x = drawn(ours, weights.numpy(), weights.numpy())
    assert x.shape == (N, 2) and (x[:, 0] != x[:, 1]).all()
    for i, j in [(0, 1), (1, 0), (2, 1)]:
        p = [0.5, 0.3, 0.2]
        share = ((x[:, 0] == i) & (x[:, 1] == j)).mean()
        assert abs(share - p[i] * p[j] / (1 - p[i])) < 0.01


IN_PLACE = {
    "normal_": (lambda x: x.normal_(1.0, 2.0), 1.0, 4.0),
    "log_normal_": (lambda x: x.log_normal_(0.1, 0.3), np.exp(0.145), 0.1258659),
    "exponential_": (lambda x: x.exponential_(2.0), 0.5, 0.25),
    "geometric_": (lambda x: x.geometric_(0.3), 1 / 0.3, 0.7 / 0.09),
    "bernoulli_": (lambda x: x.bernoulli_(0.3), 0.3, 0.21),
    "uniform_": (lambda x: x.uniform_(-1, 3), 1.0, 16 / 12),
    "random_": (lambda x: x.random_(2, 8), 4.5, 35 / 12),
    "random_ to": (lambda x: x.random_(6), 2.5, 35 / 12),
    "randint": (lambda x: torch.randint(2, 8, x.shape).to(x), 4.5, 35 / 12),
    "randint_like": (lambda x: torch.randint_like(x, 2, 8), 4.5, 35 / 12),
    "torch.normal": (lambda x: torch.normal(x, x + 1), 1.0, 4.0),
    "torch.normal of a tensor": (lambda x: torch.normal(x, 2.0), 1.0, 4.0),
    "torch.normal of a number": (lambda x: torch.normal(1.0, x + 1), 1.0, 4.0),
    "torch.normal of numbers": (lambda x: torch.normal(1.0, 2.0, x.shape), 1.0, 4.0),
    "torch.poisson": (lambda x: torch.poisson(3 * x), 3.0, 3.0),
    "torch.binomial": (lambda x: torch.binomial(10 * x, x * 0.3), 3.0, 2.1),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_moments_of_other_draws(name):
    f, mean, variance = IN_PLACE[name]
    ones = torch.ones(N)
    ours = imported(lambda a, b: f(a.clone()), ones, ones)
    x = drawn(ours, ones.numpy(), ones.numpy())
    check_moments(x[:, None], torch.tensor([float(mean)]), torch.tensor([float(variance)]))


def test_cauchy_numbers():
    ours = imported(lambda a, b: a.clone().cauchy_(1.0, 2.0), torch.ones(N), torch.ones(N))
    x = drawn(ours, np.ones(N, np.float32), np.ones(N, np.float32))
    np.testing.assert_allclose(np.quantile(x, [0.25, 0.5, 0.75]), [-1, 1, 3], atol=0.08)


def test_permutations():
    ours = imported(lambda a, b: a[torch.randperm(a.shape[0])], A.float(), B.float())
    x = drawn(ours, A.float().numpy(), B.float().numpy())
    assert sorted(map(tuple, x)) == sorted(map(tuple, A.float().numpy()))


@pytest.mark.parametrize(
    "of",
    [D.Normal, D.Gamma, D.Beta, D.Laplace, lambda a, b: D.StudentT(5.0, a, b)],
    ids=["normal", "gamma", "beta", "laplace", "student's t"],
)
def test_slopes_of_draws(of):
    """The mean slope is the slope of the mean: implicit for gamma numbers."""
    a, b = (torch.tensor([0.8, 2.0]), torch.tensor([1.5, 0.7]))
    ours = imported(lambda a, b: of(a, b).rsample((N,)), a, b)

    def mean(a, b):
        with st.nn.keys(st.random.key(0)):
            return ours(a, b).mean(0).sum()

    found = st.grad(mean, (0, 1))(a.numpy(), b.numpy())
    a.requires_grad_(), b.requires_grad_()
    wanted = torch.autograd.grad(of(a, b).mean.sum(), [a, b], allow_unused=True)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, 0 if y is None else y, atol=0.03)


def test_samples_have_no_slope():
    for f in [lambda a, b: D.Normal(a, b).sample(), torch.normal]:
        ours = imported(f, A.float(), B.float())

        def total(a, b, ours=ours):
            with st.nn.keys(st.random.key(0)):
                return ours(a, b).sum()

        for slope in st.grad(total, (0, 1))(A.float().numpy(), B.float().numpy()):
            np.testing.assert_array_equal(slope, np.zeros((4, 3)))


def test_members_draw_numbers_of_their_own():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return D.Normal(x, self.w.exp()).rsample()

    ours = st.Ensemble([st.from_torch(Noisy(), A.float()) for _ in range(3)])
    out = np.asarray(ours(A.float().numpy(), key=st.random.key(0)))
    assert out.shape == (3, 4, 3) and (out[0] != out[1]).all()


def test_distributions_go_on_checking():
    """Only exports leave it out; what PyTorch ran before, such as ``torch.cond``, may have."""
    D.Distribution.set_default_validate_args(True)
    imported(lambda a, b: D.Normal(a, b).rsample(), A.float(), B.float())
    with pytest.raises(ValueError, match="scale"):
        D.Normal(A, -B)


class Moves(nn.Module):
    """Moves its layers, ``move`` says how, to where they are."""

    def __init__(self, move):
        super().__init__()
        self.layer, self.norm, self.gru = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.GRU(3, 2)
        self.move = move

    def forward(self, x):
        self.layer = self.move(self.layer, x)
        self.move(self, x)
        return self.gru(self.norm(self.layer(x)))[0]


MOVES = {
    "to a device": lambda layer, x: layer.to(x.device),
    "to a tensor's": lambda layer, x: layer.to(x),
    "to a dtype": lambda layer, x: layer.to(dtype=torch.float64, non_blocking=True),
    "to the processor": lambda layer, x: layer.cpu(),
    "to doubles": lambda layer, x: layer.double(),
}


@pytest.mark.parametrize("name", MOVES)
def test_modules_moved_to_where_they_are(name):
    torch.manual_seed(0)
    check_module([Moves(MOVES[name]) for _ in range(3)], (A,), [(A[:2],)])


def test_modules_converted_in_forward():
    module = Moves(lambda layer, x: layer.float())
    words = r"this Linear is converted from torch.float64 on cpu to torch.float32 on cpu in forward"
    words += r" \(.*line \d+, in <lambda>\): convert it before"
    with pytest.raises(NotImplementedError, match=words):
        st.from_torch(module.double(), A.float())
    assert module.layer.weight.dtype is torch.float64


class Counts(nn.Module):
    """Asks for the length of its argument in several ways."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, x):
        if len(x) != x.shape[0] or len((x, x)) != 2:
            raise ValueError("lengths")
        rows = torch.arange(len(x), dtype=x.dtype)[:, None]
        return self.layer(x.view(len(x), -1)) + rows / len(x)


def test_lengths():
    torch.manual_seed(0)
    x = torch.from_numpy(RNG.normal(size=(5, 2, 3)))
    check_module([Counts() for _ in range(3)], (x[:2],), [(x,), (x[:1],)])


def test_shapes_are_known_while_it_lasts():
    known = fake_impls.op_implementations_dict
    before = dict(known)
    with pytest.raises(ZeroDivisionError), traceable():
        assert torch.ops.aten.linalg_lstsq.default in known
        raise ZeroDivisionError
    assert known == before


def test_shapes_are_pytorchs():
    calls = [
        (lambda a, b, how=how: torch.linalg.lstsq(a, b, driver=how), (a, b))
        for how in ("gels", "gelsy", "gelsd")
        for a, b in [
            (torch.randn(5, 3), torch.randn(5, 2)),
            (torch.randn(3, 5), torch.randn(3, 2)),
            (torch.randn(2, 5, 3), torch.randn(2, 5)),
        ]
    ]
    for function, args in calls:
        found = st.from_torch(Calls(lambda *xs, f=function: tuple(f(*xs))), args)(
            *[x.numpy() for x in args]
        )
        for ours, theirs in zip(found, function(*args), strict=True):
            assert ours.shape == tuple(theirs.shape)
            assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-4)


class Net(nn.Module):
    """Layers with and without a momentum, one of them called twice."""

    def __init__(self):
        super().__init__()
        self.plain = nn.BatchNorm2d(3, momentum=None)
        self.moving = nn.BatchNorm2d(3)
        self.flat = nn.BatchNorm1d(3, momentum=None, affine=False)

    def forward(self, x):
        x = self.moving(self.plain(x).relu())
        return self.flat(self.plain(x).mean((2, 3)))


def batches(n):
    torch.manual_seed(0)
    return [torch.randn(k + 3, 3, 4, 4) * (k + 1) for k in range(n)]


def test_statistics_and_values():
    theirs = Net()
    first, *data = batches(4)
    ours = st.from_torch(theirs, first, train=True).train()
    assert theirs.plain.momentum is None
    theirs.train()
    for x in data:
        out, after = st.nn.stateful_call(ours, x.numpy())
        compiled, ours = st.jit(st.nn.stateful_call)(ours, x.numpy())
        np.testing.assert_allclose(out, theirs(x).detach(), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(out, compiled, rtol=1e-3, atol=1e-4)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name], value, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(after.state_dict()[name], value, rtol=1e-4, atol=1e-5)
    found = ours.eval()(first.numpy())
    np.testing.assert_allclose(found, theirs.eval()(first).detach(), rtol=1e-3, atol=1e-4)


def test_members_and_files(tmp_path):
    members, (first, x) = [Net() for _ in range(3)], batches(2)
    ensemble = st.Ensemble.from_torch(members, first, train=True).train()
    for _ in range(2):
        out, ensemble = ensemble.stateful_call(x.numpy())
    for k, member in enumerate(members):
        member.train()(x)
        np.testing.assert_allclose(out[k], member(x).detach(), rtol=1e-3, atol=1e-4)
        var = ensemble[k].state_dict()["plain.running_var"]
        np.testing.assert_allclose(var, member.plain.running_var, rtol=1e-4)
    ours = st.from_torch(Net(), first, train=True)
    st.torch.save(tmp_path / "net.safetensors", ours)
    again = st.torch.load(tmp_path / "net.safetensors").train()
    _, after = st.nn.stateful_call(again, x.numpy())
    _, wanted = st.nn.stateful_call(ours.train(), x.numpy())
    np.testing.assert_array_equal(after.plain.running_var, wanted.plain.running_var)


def test_statistics_over_a_data_set():
    theirs, data = nn.Sequential(nn.BatchNorm1d(3, momentum=None)), batches(3)
    data = [x.mean((2, 3)) for x in data]
    ours = st.from_torch(theirs, data[0], train=True)
    updated = update_batch_norm(ours, [x.numpy() for x in data])
    theirs.train()
    for x in data:
        theirs(x)
    np.testing.assert_allclose(updated.state_dict()["0.running_var"], theirs[0].running_var, 1e-5)


def test_layers_come_back():
    class Breaks(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3, momentum=None)

        def forward(self, x):
            return x if x.sum() > 0 else self.norm(x)

    module = Breaks()
    with pytest.raises(Exception, match="data-dependent"):
        st.from_torch(module, torch.ones(2, 3), train=True)
    assert module.norm.momentum is None
    with counting(module):
        assert np.isnan(module.norm.momentum)


def test_a_layer_that_does_not_count_is_refused():
    class Resets(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3, momentum=None)

        def forward(self, x):
            out = self.norm(x)
            self.norm.num_batches_tracked.fill_(0)
            return out

    with pytest.raises(NotImplementedError, match=r"momentum=None, in norm .BatchNorm1d.*does not"):
        st.from_torch(Resets(), torch.ones(2, 3), train=True)


class Spike(torch.autograd.Function):
    """A step, with the slope of a smooth one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient / (1 + x.abs()) ** 2


class Steps(nn.Module):
    """Spikes in each step, and in one of them a part without gradients that holds another."""

    def __init__(self, steps):
        super().__init__()
        self.layer, self.steps = nn.Linear(3, 3), steps

    def forward(self, x):
        v = total = torch.zeros_like(x)
        for k in range(self.steps):
            v = 0.9 * v + self.layer(x)
            spike = Spike.apply(v - 0.1)
            with torch.no_grad():
                kept = v * 2
                with torch.enable_grad():
                    kept = kept + v
            v, total = v - spike, total + spike * (k + 1) + kept
        return total


def test_spikes_in_a_loop():
    torch.manual_seed(0)
    module, x = Steps(5).double(), torch.randn(4, 3, dtype=torch.float64)
    with st.config(enable_x64=True), contextlib.redirect_stderr(io.StringIO()):
        ours = st.from_torch(module, x)
        value, slope = st.value_and_grad(lambda m: (m(x.numpy()) ** 2).sum())(ours)
        wanted = module(x).square().sum()
        wanted.backward()
        np.testing.assert_allclose(value, wanted.item(), rtol=1e-12)
        np.testing.assert_allclose(slope.layer.weight, module.layer.weight.grad, rtol=1e-9)


def _written(steps, monkeypatch):
    """How many graphs have their code written when so many steps are imported."""
    count = [0]

    def write(graph):
        count[0] += 1
        return plain(graph)

    plain = substitutes._WRITE
    with monkeypatch.context() as patched:
        patched.setattr(substitutes, "_WRITE", write)
        st.from_torch(Steps(steps), torch.ones(2, 3))
    return count[0]


def test_the_work_grows_with_the_steps_and_not_with_their_square(monkeypatch):
    few, more, most = (_written(steps, monkeypatch) for steps in (2, 6, 10))
    assert few < more and most - more == more - few
