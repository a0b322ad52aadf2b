"""What PyTorch exports, as graphs and signatures."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.export.capture import capture, read  # noqa: E402
from stretto.torch.programs.torch_graph import TensorType  # noqa: E402


class Nested(nn.Module):
    """Nested arguments, checks that PyTorch writes, sizes among the results."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)

    def forward(self, pair, *more, scale=1.0, names=None):
        x, y = pair
        out, _ = self.lstm(x)
        return out * scale + y[:, None], x.shape[0], [more[0]]


def test_a_module():
    net = Nested().train()
    args = ((torch.ones(2, 5, 3), torch.ones(2, 4)), torch.ones(7))
    found = capture(net, args, {"scale": 3.0}, train=False, dynamic_batch=True)
    assert net.training and all(part.training for part in net.modules())
    graph, signature = found.graph, found.signature
    assert "aten.lstm.input" in [node.op for node in graph.nodes]
    assert not [node.op for node in graph.nodes if "assert" in node.op]
    assert signature.names == ("pair",) and signature.rest == "more"
    assert [a.name for a in signature.arguments] == ["pair", "more[0]", "scale"]
    assert {d.name: d.value for d in signature.defaults} == {"scale": 1.0, "names": None}
    pair, _, scale = signature.arguments
    assert pair.constants == ((), ()) and scale.constants == ((3.0,),)
    x, y, z = [i for i in graph.inputs if i.kind == "argument"]
    assert x.type.shape[1:] == (5, 3) and isinstance(x.type.shape[0], str)
    assert x.type.shape[0] == y.type.shape[0] != z.type.shape[0]
    assert signature.results.size == 3
    still = capture(net, args, {"scale": 3.0}, train=False, dynamic_batch=False)
    assert [i.type for i in still.graph.inputs][-1] == TensorType("float32", (7,))


def test_places():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    graph = capture(net, (torch.ones(3, 2),), {}, train=False, dynamic_batch=True).graph
    assert graph.nodes[0].place.startswith("0 (Linear), ")
    assert "linear.py" in graph.nodes[0].place


def test_constants():
    class Adds(nn.Module):
        def forward(self, x):
            return x + torch.tensor([1.0, 2.0])

    found = capture(Adds(), (torch.ones(2),), {}, train=False, dynamic_batch=False)
    (constant,) = found.constants.values()
    np.testing.assert_array_equal(constant, [1, 2])


def test_an_exported_program_stays_as_it_is():
    class Stops(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                still = 2 * x
            return still * x

    exported = torch.export.export(Stops(), (torch.ones(2),), strict=False)
    before = str(exported)
    operations = [node.op for node in read(exported).graph.nodes]
    assert "aten.detach.default" in operations
    assert str(exported) == before
    assert [node.op for node in read(exported).graph.nodes] == operations
