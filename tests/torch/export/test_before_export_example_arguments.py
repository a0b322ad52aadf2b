"""Modules that cannot come in, and examples that they do not take, before any export."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.export.before_export import check_example  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

X = torch.ones(3, 4)


class Holds(nn.Module):
    """A module inside another."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def test_wrappers_are_taken_off():
    linear = nn.Linear(4, 2)
    for wrapped in (
        torch.compile(linear),
        nn.DataParallel(linear),
        nn.DataParallel(torch.compile(linear)),
    ):
        ours = st.from_torch(wrapped, X)
        assert ours.kind == "Linear" and list(ours.state_dict()) == ["weight", "bias"]
        np.testing.assert_allclose(ours(X.numpy()), linear(X).detach(), rtol=1e-5)


def test_modules_of_torchscript_and_packed_weights():
    linear = nn.Linear(4, 4)
    scripted, traced = torch.jit.script(linear), torch.jit.trace(linear, X)
    for module, where in (
        (scripted, "from_torch: RecursiveScriptModule is"),
        (traced, "from_torch: TopLevelTracedModule is"),
        (torch.jit.freeze(torch.jit.script(Holds(linear).eval())), "RecursiveScriptModule is"),
        (Holds(scripted), "from_torch: Holds: inner is"),
    ):
        with pytest.raises(NotImplementedError, match=rf"{where} a module of TorchScript.*made of"):
            st.from_torch(module, X)
    small = torch.ao.quantization.quantize_dynamic(nn.Sequential(linear), {nn.Linear})
    with pytest.raises(NotImplementedError, match=r"Sequential: 0 is a quantized Linear, .*floats"):
        st.from_torch(small, X)


def test_modules_that_are_not_ready():
    class Without(nn.Module):
        pass

    for module in (Without(), nn.ModuleList([nn.Linear(4, 4)]), nn.ModuleDict()):
        with pytest.raises(TypeError, match=f"{type(module).__name__} has no forward: put it into"):
            st.from_torch(module, X)
    with pytest.raises(TypeError, match=r"Sequential: 0: weight is not initialized.* call the"):
        st.from_torch(nn.Sequential(nn.LazyLinear(2)), X)
    with pytest.raises(TypeError, match=r"Linear: weight has no elements.*meta device: load the"):
        st.from_torch(nn.Linear(4, 2, device="meta"), X)
    again = torch.export.export(nn.Linear(4, 2), (X,), strict=False).module()
    with pytest.raises(TypeError, match="give the ExportedProgram itself"):
        st.from_torch(again, X)
    with pytest.raises(TypeError, match="got a type, the class Linear; make a module of it first"):
        st.from_torch(nn.Linear, X)
    with pytest.raises(TypeError, match=r"got a OrderedDict; weights alone are read by st.torch"):
        st.from_torch(nn.Linear(4, 2).state_dict(), X)


@pytest.mark.parametrize(
    "args, kwargs, kind, words",
    [
        ((), {}, TypeError, "missing 1 required positional argument"),
        ((X, X), {}, TypeError, "takes 2 positional arguments but 3 were given"),
        ((X,), {"scale": 2}, TypeError, "unexpected keyword argument 'scale'"),
        ((torch.ones(3, 5),), {}, RuntimeError, "shapes cannot be multiplied"),
        ((X.long(),), {}, RuntimeError, "same dtype"),
        ((X.double(),), {}, RuntimeError, "same dtype"),
        (([[1.0, 2.0]],), {}, TypeError, "must be Tensor"),
        (None, {}, TypeError, "must be Tensor"),
    ],
)
def test_examples_that_the_module_does_not_take(args, kwargs, kind, words):
    with pytest.raises(kind, match=words) as caught:
        st.from_torch(nn.Linear(4, 2), args, kwargs)
    assert "PyTorch's own call of this Linear with the example" in caught.value.__notes__[-1]


def test_examples_of_other_kinds():
    for x, whose in ((X.numpy(), "numpy"), (st.numpy.ones((3, 4)), "stretto")):
        with pytest.raises(TypeError, match=rf"the example has a {whose} array: .*from_numpy"):
            st.from_torch(nn.Linear(4, 2), x)
    with pytest.raises(IndexError, match="out of range"):
        st.from_torch(nn.Embedding(3, 2), torch.tensor([3]))


def test_what_lacks_a_kernel_comes_in(monkeypatch):
    def lacking(self, x):
        if not torch.compiler.is_exporting():
            raise NotImplementedError('"addmm" not implemented for this dtype')
        return x * 2

    monkeypatch.setattr(Holds, "forward", lacking)
    np.testing.assert_array_equal(st.from_torch(Holds(None), X)(X.numpy()), 2 * X)


def test_module_example_and_generator_stay_as_they_were():
    class Changes(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.norm = nn.BatchNorm1d(4)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.data.add_(1)
            return self.norm(self.linear(x)) + torch.rand(4)

    module, x = Changes().train(), X.clone().requires_grad_()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    memory = [value.data_ptr() for value in module.state_dict().values()]
    state = torch.get_rng_state()
    attributes = {path: list(vars(part)) for path, part in module.named_modules()}
    check_example("from_torch", module, (x,), {})
    assert torch.equal(torch.get_rng_state(), state)
    assert attributes == {path: list(vars(part)) for path, part in module.named_modules()}
    after = module.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert memory == [value.data_ptr() for value in after.values()]
    assert x.grad is None and torch.equal(x, X)


def test_containers_and_attributes_are_restored():
    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen, self.by_name, self.n, self.cache = [], {}, 0, None

        def forward(self, x):
            self.seen.append(x)
            self.by_name["x"] = x
            self.n, self.cache, self.more = self.n + 1, x, x
            x.mul_(2)
            return x

    module, x = Remembers(), X.clone()
    seen = module.seen
    check_example("from_torch", module, (x,), {})
    assert (module.seen, module.by_name, module.n, module.cache) == ([], {}, 0, None)
    assert module.seen is seen and not hasattr(module, "more") and torch.equal(x, X)


def test_arguments_that_are_one_tensor_in_the_example():
    class Differs(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3, 4))

        def forward(self, x, y, *, z, twice, scale, mode=None):
            return (x + 10 * y[0] + 100 * z + self.w) * (scale if twice else 1)

    module, x = Differs(), torch.zeros(3, 4)
    for args, z in (((x, (x,)), x), ((module.w, (module.w,)), module.w[:]), ((x, (x[:],)), x[:])):
        flags = {"twice": True, "scale": 2, "mode": "sum"}
        ours = st.from_torch(module, args, {"z": z, **flags})
        one = np.ones((3, 4), np.float32)
        np.testing.assert_array_equal(ours(one, (2 * one,), z=3 * one, **flags), 644 * one)
