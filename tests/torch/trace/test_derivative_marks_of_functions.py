"""Functions with a backward of their own."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

torch = pytest.importorskip("torch")
from torch.autograd import Function  # noqa: E402 (only where PyTorch is)
from torch.autograd.function import once_differentiable  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from stretto.torch.trace.derivative_marks import Unfit  # noqa: E402
from tests.torch.slopes import X, check, slopes, theirs, with_forward  # noqa: E402


class Reversed(Function):
    """Reverses gradients, and scales them by what is no tensor."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.scale * g, None


reverse = Reversed.apply  # bound before anything is traced


class Same(Function):
    """Returns its input itself."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return 3 * g


class StraightThrough(Function):
    """Rounds, with the gradient of the identity."""

    @staticmethod
    def forward(ctx, x):
        return torch.round(2 * x)

    @staticmethod
    def backward(ctx, g):
        return g


class Spike(Function):
    """A step, with a surrogate gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.gt(0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.clone() / (3.0 * x.abs() + 1.0) ** 2


class Power(Function):
    """Saves an input and a result, and has a gradient that is not the power's."""

    @staticmethod
    def forward(ctx, x, n):
        y = x.abs() ** n
        ctx.save_for_backward(x, y)
        ctx.n = n
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * ctx.n * y / x + 0.1 * x, None


class Sorted(Function):
    """Several results, one of which has no derivative, and inputs asked for."""

    @staticmethod
    def forward(ctx, a, b):
        order = a.argsort(-1)
        ctx.save_for_backward(a, b)
        ctx.mark_non_differentiable(order)
        return a * b, a.gather(-1, order), order

    @staticmethod
    def backward(ctx, g, h, none):
        a, b = ctx.saved_tensors
        by_a = 2 * g * b + h if ctx.needs_input_grad[0] else None
        return by_a, 5 * g * a if ctx.needs_input_grad[1] else None


class Product(Function):
    """The style in which the context is set up apart, with a default and a broadcast input."""

    @staticmethod
    def forward(x, w, k=2.0):
        return x * w * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.k = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return ctx.k * g * w, (g * x).clamp(-1, 1), None  # summed over rows by PyTorch


class Once(Function):
    """May be differentiated once."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 0.5 * g * x.exp()


class Clamped(Function):
    """Writes into its input."""

    @staticmethod
    def forward(ctx, x):
        x.clamp_(-0.3, 0.3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Inside(Function):
    """Applies other Functions on both ways, and keeps what is neither input nor result."""

    @staticmethod
    def forward(ctx, x):
        ctx.gate = torch.sigmoid(x)
        ctx.save_for_backward(x)
        return StraightThrough.apply(x) + ctx.gate

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return Power.apply(x, 2) * g * ctx.gate / x.shape[0]


class Again(Function):
    """Runs what it is given again, and has PyTorch differentiate that."""

    @staticmethod
    def forward(ctx, x, f):
        ctx.f = f
        ctx.save_for_backward(x)
        return f(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            y = ctx.f(z)
        return 2 * torch.autograd.grad(y, z, g)[0], None


class InPlace(Function):
    """Writes into the gradient that it gets, and into constants; gives one gradient too many."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x, "no tensor"

    @staticmethod
    def backward(ctx, g, none):
        (x,) = ctx.saved_tensors
        assert none is None
        g[x < 0] = 0
        return g.mul_(torch.tensor([1.0, 2.0, 3.0], dtype=g.dtype)), None


class Complex(Function):
    """A complex result of a real input."""

    @staticmethod
    def forward(ctx, x):
        return torch.complex(x, 2 * x)

    @staticmethod
    def backward(ctx, g):
        return g.real + 3 * g.imag


class Square(Function):
    """A complex input, a ``vjp`` in place of a ``backward``, gradients that are not made up."""

    @staticmethod
    def forward(ctx, z):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(z)
        return z * z, 3 * z

    @staticmethod
    def vjp(ctx, g, h):
        (z,) = ctx.saved_tensors
        return g * (2 * z).conj() * (1 + 1j) + (0 if h is None else h)


def spiking(self, x):
    v, out = torch.zeros_like(x), 0
    for _ in range(3):
        v = 0.9 * v + self.layer(x)
        spike = Spike.apply(v - 0.5)
        v = v * (1 - spike.detach())
        out = out + spike * v
    return out


def sorting(self, x):
    a, b, order = Sorted.apply(self.layer(x), x)
    return a + 2 * b + order


def clamped(self, x):
    h = 1 * self.layer(x)
    y = Clamped.apply(h)
    return y * x + h


def of_a_closure(self, x):
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            return x * self.layer.weight.sum()

        @staticmethod
        def backward(ctx, g):
            return 2 * g * self.layer.weight.sum()

    return Scaled.apply(x)


FUNCTIONS = {
    "reversed": lambda self, x: reverse(self.layer(x), 0.5),
    "same": lambda self, x: Same.apply(self.layer(x)) * self.layer(x),
    "twice": lambda self, x: Same.apply(Same.apply(self.layer(x))),
    "of an argument": lambda self, x: Same.apply(x) * self.layer(x),
    "of a parameter": lambda self, x: x @ Same.apply(self.layer.weight),
    "straight through": lambda self, x: StraightThrough.apply(self.layer(x)) * x,
    "written into afterwards": lambda self, x: torch.relu_(Same.apply(self.layer(x)) * 1) * x,
    "spiking": spiking,
    "power": lambda self, x: Power.apply(self.layer(x), 3),
    "sorted": sorting,
    "one of several": lambda self, x: Sorted.apply(self.layer(x), x)[0],
    "product": lambda self, x: Product.apply(self.layer(x), self.layer.bias),
    "by name": lambda self, x: Product.apply(k=3.0, x=self.layer(x), w=self.layer.bias),
    "once": lambda self, x: Once.apply(self.layer(x)) * x,
    "written": clamped,
    "inside": lambda self, x: Inside.apply(self.layer(x)),
    "of a closure": of_a_closure,
    "again": lambda self, x: Again.apply(self.layer(x), torch.sin),
    "in place": lambda self, x: InPlace.apply(self.layer(x))[0],
    "complex": lambda self, x: (Complex.apply(self.layer(x)) * (1 + 2j)).imag,
    "square": lambda self, x: (Square.apply(torch.complex(self.layer(x), x))[0] * 2j).imag,
    "recomputed": lambda self, x: (
        checkpoint(lambda y: Power.apply(self.layer(y), 3), x, use_reentrant=False) * x
    ),
    "differentiated inside": lambda self, x: (
        torch.autograd.grad(Power.apply(z := x.detach().requires_grad_(), 2).sum(), z)[0]
        * self.layer(x)
    ),
}


@pytest.mark.parametrize("forward", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_have_their_own_gradients(forward):
    check(with_forward(forward))


@pytest.mark.parametrize(
    "forward", [FUNCTIONS["again"], FUNCTIONS["power"]], ids=["again", "power"]
)
def test_functions_in_train_mode(forward):
    check(with_forward(forward), train=True)


@pytest.mark.parametrize("name", ["power", "product", "inside", "sorted", "square"])
def test_second_derivatives(name):
    module = with_forward(FUNCTIONS[name])
    x = torch.tensor(X, requires_grad=True)
    weights = torch.cos(torch.arange(12.0, dtype=torch.float64)).reshape(4, 3)
    (slope,) = torch.autograd.grad((module(x) * weights).sum(), x, create_graph=True)
    by = [x, module.layer.weight]
    expected = torch.autograd.grad((slope**2).sum(), by, materialize_grads=True)
    with st.config(enable_x64=True):
        ours = st.from_torch(module, torch.from_numpy(X))

        def loss(module, x):
            return (module(x) * snp.asarray(weights.numpy())).sum()

        def squares(module, x):
            return (st.grad(loss, argnums=1)(module, x) ** 2).sum()

        of, by_x = st.jit(st.grad(squares, argnums=(0, 1)))(ours, X)
    np.testing.assert_allclose(by_x, expected[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(of.layer.weight, expected[1], rtol=1e-10, atol=1e-12)


def test_a_second_derivative_of_what_has_one():
    ours = st.from_torch(with_forward(FUNCTIONS["once"]).float(), torch.ones(4, 3))

    def slope(x):
        return st.grad(lambda x: ours(x).sum())(x).sum()

    with pytest.raises(NotImplementedError, match="Once: its backward is once_differentiable"):
        st.grad(slope)(snp.ones((4, 3)))


def test_no_forward_derivative():
    ours = st.from_torch(with_forward(FUNCTIONS["power"]).float(), torch.ones(4, 3))
    with pytest.raises(st.errors.MissingRuleError, match="Power"):
        st.jvp(ours, (snp.ones((4, 3)),), (snp.ones((4, 3)),))


@pytest.mark.parametrize("name", ["power", "sorted"])
def test_members_examples_and_files(name, tmp_path):
    kind = type(with_forward(FUNCTIONS[name]))
    members = [kind().double() for _ in range(3)]
    with st.config(enable_x64=True):
        ensemble = st.Ensemble.from_torch(members, torch.from_numpy(X))
        assert "3 × Module" in repr(ensemble)
        (every,) = st.jit(st.grad(lambda e: (e(X) ** 2).sum()))(ensemble).state_dict()
        ours = [st.from_torch(member, torch.from_numpy(X)) for member in members]
        for one, slope in zip(ours, every["layer.weight"], strict=True):
            expected = st.grad(lambda m: (m(X) ** 2).sum())(one).layer.weight
            np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-12)
        st.torch.save(tmp_path / "one.safetensors", ours[0])
        again = st.torch.load(tmp_path / "one.safetensors")
        for name, value in theirs(members[0])[1].items():
            np.testing.assert_allclose(slopes(again)[name], value, rtol=1e-10, atol=1e-12)
        each = st.vmap(st.grad(lambda m, x: m(x[None]).sum()), (None, 0))(again, X)
        whole = st.grad(lambda m: m(X).sum())(again)
        np.testing.assert_allclose(
            np.sum(each.layer.weight, 0), whole.layer.weight, rtol=1e-10, atol=1e-12
        )


# Refusals


class Bare(Function):
    """Has no backward."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x


class Foreign(Bare):
    """Leaves PyTorch."""

    @staticmethod
    def backward(ctx, g):
        return torch.from_numpy(g.numpy())


class Deciding(Bare):
    """Decides by values."""

    @staticmethod
    def backward(ctx, g):
        return g if g.sum() > 0 else -g


class Short(Bare):
    """Gives too few gradients."""

    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return g


class Noisy(Bare):
    """Draws on the way back."""

    @staticmethod
    def backward(ctx, g):
        return g + torch.rand_like(g)


def keeping(self, x):
    class Kept(Bare):
        @staticmethod
        def backward(ctx, g):
            self.mean.copy_(g.mean(0))
            return g

    return Kept.apply(self.layer(x))


REFUSED = {
    "bare": (lambda self, x: Bare.apply(x), "backward of the autograd.Function Bare, applied in"),
    "foreign": (lambda self, x: Foreign.apply(x), "Function Foreign.* cannot be traced"),
    "deciding": (lambda self, x: Deciding.apply(x), "Function Deciding.* cannot be traced"),
    "short": (lambda self, x: Short.apply(x, x), "Short has 2 inputs, and backward gave 1"),
    "noisy": (lambda self, x: Noisy.apply(x), "the backward of Noisy draws random numbers"),
    "keeping": (keeping, "the backward of keeping.Kept computes is kept and used outside"),
    "branch": (
        lambda self, x: torch.cond(x.sum() > 0, lambda x: Same.apply(2 * x), lambda x: x, (x,)),
        "an autograd.Function is applied, Same, inside a branch of torch.cond",
    ),
}


@pytest.mark.parametrize(("forward", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals(forward, words):
    with pytest.raises(NotImplementedError, match=rf"(?s)from_torch: .*{words}"):
        st.from_torch(with_forward(forward), torch.from_numpy(X))


class MappedProduct(Product):
    """Says that PyTorch may map it."""

    generate_vmap_rule = True


def test_a_function_that_is_mapped():
    check(with_forward(lambda self, x: torch.func.vmap(MappedProduct.apply)(self.layer(x), x)))


def test_a_function_without_a_backward_where_none_is_needed():
    def forward(self, x):
        with torch.no_grad():
            h = Bare.apply(self.layer(x))
        return h * x

    check(with_forward(forward))


def test_buffers_that_a_function_writes():
    class Centred(Function):
        @staticmethod
        def forward(ctx, x, mean):
            mean.mul_(0.9).add_(0.1 * x.mean(0))
            return x - mean

        @staticmethod
        def backward(ctx, g):
            return 2 * g, None

    module = with_forward(lambda self, x: Centred.apply(self.layer(x), self.mean))
    with st.config(enable_x64=True):
        ours = st.from_torch(module, torch.from_numpy(X))
        out, after = st.nn.stateful_call(ours, X)
    np.testing.assert_allclose(out, module(torch.from_numpy(X)).detach(), rtol=1e-12)
    np.testing.assert_allclose(after.mean, module.mean, rtol=1e-12)


def test_refusals_are_not_about_export():
    with pytest.raises(Unfit) as caught:
        st.from_torch(with_forward(REFUSED["bare"][0]), torch.from_numpy(X))
    assert not getattr(caught.value, "__notes__", [])
    assert "test_derivative_marks_of_functions.py, line" in str(caught.value)
