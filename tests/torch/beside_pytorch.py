"""Functions of PyTorch beside what they become here: values, slopes, compiled, and mapped."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

torch = pytest.importorskip("torch")


class Calls(torch.nn.Module):
    """A module whose forward is a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *xs):
        return self.function(*xs)


def weights(shape):
    """Numbers from a half to three halves, by which results are summed."""
    return np.random.default_rng(0).uniform(0.5, 1.5, tuple(shape))


def check_function(function, *xs, fixed=(), single=True):
    """Compare a function of tensors with what comes in of it.

    It is called with float64 and, if ``single``, with float32; slopes are those by all arguments of
    floats, but those at the places ``fixed``.
    """
    for dtype, tolerance in [(torch.float64, 1e-9), (torch.float32, 2e-5)][: 1 + single]:
        given = [x.to(dtype) if x.is_floating_point() else x for x in xs]
        with st.config(enable_x64=dtype is torch.float64):
            _check(function, given, fixed, {"rtol": tolerance, "atol": tolerance})


def _check(function, xs, fixed, near):
    moving = [k for k, x in enumerate(xs) if x.is_floating_point() and k not in fixed]
    leaves = [x.clone().requires_grad_(k in moving) for k, x in enumerate(xs)]
    expected = function(*leaves)
    arrays = [x.numpy() for x in xs]
    ours = st.from_torch(Calls(function), tuple(xs), dynamic_batch=False)
    wanted = expected.detach().numpy()
    for run in (ours, st.jit(ours)):
        np.testing.assert_allclose(run(*arrays), wanted, **near)
    mapped = st.vmap(ours)(*[np.stack([x, x]) for x in arrays])
    np.testing.assert_allclose(mapped, np.stack([wanted, wanted]), **near)
    if not expected.requires_grad:
        return
    scale = weights(wanted.shape).astype(wanted.dtype)
    slopes = torch.autograd.grad(
        (expected * torch.from_numpy(scale)).sum(), [leaves[k] for k in moving]
    )

    def total(chosen):
        given = [snp.asarray(x) for x in arrays]
        for k, x in zip(moving, chosen, strict=True):
            given[k] = x
        return (ours(*given) * scale).sum()

    near = {name: 10 * value for name, value in near.items()}  # a slope is a sum of several
    found = st.jit(st.grad(total))([snp.asarray(arrays[k]) for k in moving])
    for x, y in zip(found, slopes, strict=True):
        np.testing.assert_allclose(x, y.numpy(), **near)
