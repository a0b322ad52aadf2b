"""Gradients that are stopped or go another way, also by writes."""

import json

import pytest

import stretto as st

torch = pytest.importorskip("torch")
from stretto.torch.export.capture import capture  # noqa: E402 (only where PyTorch is)
from stretto.torch.programs.torch_graph import Graph, Ref, Subgraph  # noqa: E402
from tests.torch.slopes import X, check, with_forward  # noqa: E402 (only where PyTorch is)


class Scaled(torch.autograd.Function):
    """Has work on the way back that needs no gradient."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * torch.sigmoid(w).sum() / x.shape[0], None


class Net(torch.nn.Module):
    """Applies it to an argument and a parameter."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return Scaled.apply(x, self.w).exp()


def captured(module):
    return capture(module, (torch.ones(4, 3),), {}, train=False, dynamic_batch=True).graph


def test_a_rule_is_a_graph_of_its_own():
    graph = captured(Net())
    operations = [node.op for node in graph.nodes if node.op != "aten.sym_size.int"]
    assert operations == [
        "aten.mul.Tensor",
        "aten.detach.default",
        "stretto.with_backward.default",
        "operator.getitem",
        "aten.exp.default",
    ]
    (rule,) = [node for node in graph.nodes if node.op.startswith("stretto.")]
    name, once, inputs, outputs, residuals, called = rule.args
    assert (name, once, called) == ("Scaled", False, Subgraph(0))
    assert inputs == (Ref(1),) and graph.inputs[1].name == "x" and len(outputs) == 1
    (of_rule,) = graph.subgraphs
    assert "aten.sigmoid.default" in [node.op for node in of_rule.nodes]
    assert len(of_rule.inputs) == 1 + len(residuals) and len(of_rule.outputs) == 1
    assert Graph.from_json(json.loads(json.dumps(graph.to_json()))) == graph


def test_programs_with_other_rules_differ():
    class Other(Scaled):
        @staticmethod
        def backward(ctx, g):
            return g, None

    class OtherNet(Net):
        def forward(self, x):
            return Other.apply(x, self.w).exp()

    assert captured(Net()) == captured(Net()) != captured(OtherNet())


def test_a_module_without_rules_is_as_exported():
    graph = captured(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()))
    assert [node.op for node in graph.nodes] == ["aten.linear.default", "aten.relu.default"]


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
        (
            another_shape,
            r"\.data gets a tensor of another shape or dtype in .*test_exported_graphs_backward.py",
        ),
        (a_gradient_on_one_side, "copy_.* writes a value that has a gradient .* through .data"),
    ]:
        with pytest.raises(NotImplementedError, match=f"from_torch: .*{words}"):
            st.from_torch(with_forward(forward), torch.from_numpy(X))
