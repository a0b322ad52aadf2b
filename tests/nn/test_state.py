"""``stateful_call``: new buffers come back, the module given stays, whatever the transformation."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn


class Mean(nn.Module):
    """Subtracts the running mean of what it has seen."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(snp.ones(()))
        self.register_buffer("mean", snp.zeros(()))
        self.register_buffer("seen", snp.zeros((), int))

    def forward(self, x):
        if self.training:
            self.update_buffer("seen", self.seen + 1)
            self.update_buffer("mean", self.mean + (x.mean() - self.mean) / self.seen)
        return self.scale * (x - self.mean)


class Twice(nn.Module):
    """One layer called twice, under two names."""

    def __init__(self):
        super().__init__()
        self.first = Mean()
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x) + 10)


def test_at_rest():
    module = Mean()
    out, after = nn.stateful_call(module, snp.array([1.0, 3.0]))
    np.testing.assert_allclose(out, [-1, 1])
    assert float(after.mean) == 2 and int(after.seen) == 1
    assert float(module.mean) == 0 and int(module.seen) == 0
    assert np.shares_memory(np.asarray(after.scale), np.asarray(module.scale))
    with pytest.raises(TypeError, match="stateful_call: expected a module, got function"):
        nn.stateful_call(lambda x: x, 1)


def test_what_is_shared_is_updated_once_and_for_all():
    out, after = nn.stateful_call(Twice(), snp.array([1.0, 3.0]))
    assert after.first is after.second and int(after.first.seen) == 2
    np.testing.assert_allclose(after.first.mean, 6)
    np.testing.assert_allclose(out, [3, 5])


def test_what_is_shared_comes_apart_in_trees():
    # A tree has no two places for one thing; the call itself still sees one module.
    model = Twice()
    after = st.jit(lambda x: nn.stateful_call(model, x)[1])(snp.array([1.0, 3.0]))
    np.testing.assert_allclose([after.first.mean, after.second.mean], 6)
    assert after.first is not after.second
    apart = st.jit(nn.stateful_call)(model, snp.array([1.0, 3.0]))[1]
    np.testing.assert_allclose([apart.first.mean, apart.second.mean], [2, 10])


def test_in_every_transformation():
    x = snp.array([[1.0, 3.0], [5.0, 7.0]])
    out, after = st.jit(nn.stateful_call)(Mean(), x)
    np.testing.assert_allclose(out, x - 4)
    assert float(after.mean) == 4

    def loss(module, x):
        out, after = nn.stateful_call(module, x)
        return (out**2).sum(), after

    slopes, after = st.grad(loss, has_aux=True)(Mean(), x)
    assert float(after.mean) == 4 and float(slopes.scale) == 40

    members = st.stack([Mean() for _ in range(2)])
    _, each = st.vmap(nn.stateful_call)(members, x)
    np.testing.assert_allclose(each.mean, [2, 6])
    _, each = st.jit(st.vmap(nn.stateful_call, in_axes=(0, None)))(members, x)
    np.testing.assert_allclose(each.mean, [4, 4])

    def step(module, x):
        out, module = nn.stateful_call(module, x)
        return module, out

    last, _ = st.lax.scan(step, Mean(), x)
    assert float(last.mean) == 4 and int(last.seen) == 2


class Through(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.inner = Mean()
        self.how = how

    def forward(self, x):
        return self.how(self.inner)(x)


@pytest.mark.parametrize("how", [st.jit, st.vmap, st.checkpoint], ids=["jit", "vmap", "checkpoint"])
def test_a_transformation_inside_needs_a_call_of_its_own(how):
    model, x = Through(how), snp.array([1.0, 3.0])
    with pytest.raises(RuntimeError, match="began within the call which keeps buffers"):
        nn.stateful_call(model, x)
    with pytest.raises(RuntimeError, match=r"lost\. Call the model with"):
        st.jit(lambda m, x: m(x))(model, x)
    assert float(model.inner.mean) == 0


def test_the_way_out_for_checkpoint():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Mean()

        def forward(self, x):
            out, self.inner = st.checkpoint(nn.stateful_call)(self.inner, x)
            return out

    _, after = nn.stateful_call(Layer(), snp.array([1.0, 3.0]))
    assert float(after.inner.mean) == 2


def test_other_modules_are_not_open():
    outside = Mean()

    class Reaches(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(1.0)

        def forward(self, x):
            return outside(x)

    with pytest.raises(RuntimeError, match=r"nn.stateful_call"):
        st.jit(nn.stateful_call)(Reaches(), snp.ones(2))
    assert int(outside.seen) == 0


def test_gradients_are_transformations_too():
    # What a derivative hands on may be concrete; the module that it is assigned to is lost.
    class Fixed(Mean):
        def forward(self, x):
            self.update_buffer("seen", st.lax.stop_gradient(self.seen + 1))
            return self.scale * x.sum()

    module = Fixed()
    for loss in (lambda m, x: m(x), lambda m, x: module(x)):
        with pytest.raises(RuntimeError, match=r"lost\. Call the model with"):
            st.grad(loss, 1)(module, snp.ones(2))
    assert int(module.seen) == 0
