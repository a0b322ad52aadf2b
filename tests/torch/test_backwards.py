"""Graphs of modules that have rules of their own."""

import json

import pytest

torch = pytest.importorskip("torch")

from stretto.torch.capture import capture  # noqa: E402 (only where PyTorch is)
from stretto.torch.graph import Graph, Ref, Subgraph  # noqa: E402


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
