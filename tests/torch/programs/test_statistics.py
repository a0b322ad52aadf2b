"""Running statistics of imported modules as plain means over batches."""

import copy

import numpy as np
import pytest

import stretto as st
from stretto.ensemble import update_batch_norm
from stretto.torch.imported_module import Held, assembled
from stretto.torch.programs.buffers import with_plain_means
from stretto.torch.programs.signature import LEAF, Argument, Signature
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, TensorType
from stretto.torch.programs.torch_program import Program

FEATURES, COUNT = TensorType("float32", (2,)), TensorType("int64", ())
RESULT = TensorType("float32", (None, 2))
NORM = "aten._native_batch_norm_legit_functional.default"
DATA = [np.float32(np.arange(2 * n).reshape(n, 2) ** 2) for n in (3, 5, 2)]


def normalization(counts=True):
    """A layer of batch normalization, which may count its batches."""
    inputs = (
        Input("buffer", "norm.running_mean", FEATURES),
        Input("buffer", "norm.running_var", FEATURES),
        Input("buffer", "norm.num_batches_tracked", COUNT),
        Input("argument", "x", RESULT),
    )
    nodes = (
        Node("aten.add.Tensor", (Ref(2), 1), (), (COUNT,), ""),
        Node(
            NORM,
            (Ref(3), None, None, Ref(0), Ref(1), True, 0.1, 1e-5),
            (),
            (RESULT, *[FEATURES] * 4),
            "",
        ),
        *[
            Node("operator.getitem", (Ref(5), k), (), (FEATURES if k else RESULT,), "")
            for k in (0, 3, 4)
        ],
    )
    outputs = (
        Output("buffer", "norm.running_mean", Ref(7)),
        Output("buffer", "norm.running_var", Ref(8)),
        *([Output("buffer", "norm.num_batches_tracked", Ref(4))] if counts else []),
        Output("result", "", Ref(6)),
    )
    return Program(
        Graph(inputs, nodes, outputs),
        Signature(("x",), "", (), (Argument("x", LEAF, ((),)),), LEAF),
        {},
    )


def module(training):
    arrays = {
        "norm.running_mean": Held("buffer", np.float32([5, 5])),
        "norm.running_var": Held("buffer", np.float32([7, 7])),
        "norm.num_batches_tracked": Held("buffer", np.int32(9)),
    }
    return assembled(
        "Net", training or normalization(), training, (), arrays, {"norm": "BatchNorm1d"}
    )


def test_the_momentum_becomes_the_count():
    program = normalization()
    counting, layers = with_plain_means(program)
    assert layers == ("norm",)
    assert counting.graph.nodes[1].args[6] == Ref(4) and program.graph.nodes[1].args[6] == 0.1
    assert with_plain_means(counting) == (counting, layers)
    same, none = with_plain_means(normalization(counts=False))
    assert none == () and same == normalization(counts=False)


def test_means_over_batches():
    net = module(normalization())
    after = update_batch_norm(net, DATA)
    np.testing.assert_allclose(
        after.norm.running_mean, np.mean([x.mean(0) for x in DATA], 0), rtol=1e-6
    )
    np.testing.assert_allclose(
        after.norm.running_var, np.mean([x.var(0, ddof=1) for x in DATA], 0), rtol=1e-5
    )
    assert int(after.norm.num_batches_tracked) == 3 and not after.training
    assert st.tree.structure(after) == st.tree.structure(net)
    both = update_batch_norm(st.Ensemble([net, after]), DATA)
    for member in both:
        np.testing.assert_allclose(member.norm.running_mean, after.norm.running_mean, rtol=1e-6)
    with pytest.raises(RuntimeError, match=r"Net was not imported in train mode.*train=True"):
        update_batch_norm(st.nn.Sequential(module(None), st.nn.BatchNorm1d(2)), DATA)


def test_as_pytorch_computes_them():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        """One layer is used twice, one keeps no statistics, and one is of another kind."""

        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.BatchNorm1d(2), torch.nn.Sequential(torch.nn.BatchNorm1d(2))
            self.none = torch.nn.BatchNorm1d(2, track_running_stats=False)
            self.other = torch.nn.InstanceNorm1d(2, track_running_stats=True)

        def forward(self, x):
            x = self.none(self.a(self.b(self.a(x)) * 2 + 1))
            return x + self.other(x.T[None])[0].T

    theirs = Net().eval()
    ours = st.from_torch(theirs, torch.from_numpy(DATA[0]), train=True)
    after = update_batch_norm(ours, DATA).state_dict()
    expected = copy.deepcopy(theirs)
    torch.optim.swa_utils.update_bn([torch.from_numpy(x) for x in DATA], expected)
    for name, value in expected.named_buffers():
        if not name.startswith("other"):
            np.testing.assert_allclose(after[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
