"""Writes that gradients do not see: the values are new, and gradients go to what was there."""

import pytest

import stretto as st

torch = pytest.importorskip("torch")

from tests.torch.slopes import X, check, with_forward  # noqa: E402 (only where PyTorch is)


def scaled(self, x):
    h = 1 * self.layer(x)
    with torch.no_grad():
        h.mul_(2)
        y = h.add_(x)
    return y * x + h


def rounded(self, x):
    h = 1 * self.layer(x)
    h.data = torch.round(2 * h.data)
    return h * x


def clamped(self, x):
    h = 1 * self.layer(x)
    h.data.clamp_(-0.2, 0.2)
    return h * x


def through_detach(self, x):
    h = 1 * self.layer(x)
    d = h.detach()
    d.mul_(2)
    return d * x + h * x


def elements(self, x):
    h = 1 * self.layer(x)
    with torch.no_grad():
        h[:, 0] = 5
        h[h > 0] = 0
    h.data[:, 1] = 3
    h.data[0].mul_(3)
    return h * x


def of_a_view(self, x):
    h = 1 * self.layer(x)
    v = h[:, :2]
    with torch.no_grad():
        v.mul_(2)
        h.add_(1)
    return h * x + v.sum()


def into_out(self, x):
    h = 1 * self.layer(x)
    with torch.inference_mode(False), torch.no_grad():
        torch.mul(h, 3, out=h)
    return h * x


def outside_then_inside(self, x):
    b = torch.zeros_like(x)
    with torch.no_grad():
        b[:, 0] = self.layer(x)[:, 0]
    return b * x


def inside_then_outside(self, x):
    with torch.no_grad():
        b = torch.zeros_like(x)
    for i in range(3):
        b[:, i] = self.layer(x)[:, i] + b.sum()
    b.mul_(2)
    return b * x


def detached_and_copied(self, x):
    d = self.layer(x).detach().clone()
    d[:, 0] = self.layer(x)[:, 1]
    return d * x


ALL = [scaled, rounded, clamped, through_detach, elements, of_a_view, into_out]
ALL += [outside_then_inside, inside_then_outside, detached_and_copied]


@pytest.mark.parametrize("forward", ALL)
def test_gradients_of_what_was_written(forward):
    check(with_forward(forward))


def test_buffers_are_updated_as_ever():
    def forward(self, x):
        self.mean.data.mul_(0.5)
        with torch.no_grad():
            self.mean[1] += x.mean()
        return self.layer(x) + self.mean

    module = with_forward(forward)
    with st.config(enable_x64=True):
        ours = st.from_torch(module, torch.from_numpy(X))
        out, after = st.nn.stateful_call(ours, X)
    assert abs(out - module(torch.from_numpy(X)).detach().numpy()).max() < 1e-12
    assert abs(after.mean - module.mean.numpy()).max() < 1e-12
    graph = ours.evaluation_program.graph
    assert "stretto.with_backward.default" not in [node.op for node in graph.walk()]


def test_refusals():
    def another_shape(self, x):
        h = 1 * self.layer(x)
        h.data = h.data[:2]
        return h

    def a_gradient_on_one_side(self, x):
        h = 1 * self.layer(x)
        d = h.data
        d[:, 0] = self.layer(x)[:, 1]
        return h * x + d

    for forward, words in [
        (another_shape, r"\.data gets a tensor of another shape or dtype in .*test_writes.py"),
        (a_gradient_on_one_side, "copy_.* writes a value that has a gradient .* through .data"),
    ]:
        with pytest.raises(NotImplementedError, match=f"from_torch: .*{words}"):
            st.from_torch(with_forward(forward), torch.from_numpy(X))
