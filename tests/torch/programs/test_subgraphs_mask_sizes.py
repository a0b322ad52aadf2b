"""Masks that are computed alike give one size."""

from stretto.torch.programs.subgraphs import mask_of, open_sizes, with_masks_shared
from stretto.torch.programs.torch_graph import Graph, Input, Node, Output, Ref, TensorType

VECTOR, MASK = TensorType("float32", ("s0",)), TensorType("bool", ("s0",))


def graph(first, second):
    """Selects elements of x by two masks, and adds them up."""
    index = lambda mask, size: Node(
        "aten.index.Tensor", (Ref(0), (mask,)), (), (TensorType("float32", (size,)),), ""
    )
    total = Node("aten.add.Tensor", (Ref(3), Ref(4)), (), (TensorType("float32", ("u1",)),), "")
    nodes = (first, second, index(Ref(1), "u0"), index(Ref(2), "u1"), total)
    return Graph((Input("argument", "x", VECTOR),), nodes, (Output("result", "", Ref(5)),))


def above(number, op="aten.gt.Scalar"):
    return Node(op, (Ref(0), number), (), (MASK,), "")


def test_equal_masks_are_one():
    found = with_masks_shared(graph(above(0), above(0)))
    assert [mask_of(found, node) for node in found.nodes] == [-1, -1, 1, 1, -1]
    assert [open_sizes(node) for node in found.nodes[2:]] == [{"u0"}] * 3


def test_other_masks_are_others():
    for one, other in [
        (above(0), above(1)),
        (above(0), above(0, "aten.ge.Scalar")),
        (above(0.5, "aten.bernoulli.p"), above(0.5, "aten.bernoulli.p")),
    ]:
        apart = graph(one, other)
        assert with_masks_shared(apart) is apart


def test_what_selects():
    taken = graph(above(0), above(1))
    assert mask_of(taken, Node("aten.nonzero.default", (Ref(1),), (), (), "")) == 1
    assert mask_of(taken, Node("aten.masked_select.default", (Ref(0), Ref(2)), (), (), "")) == 2
    assert mask_of(taken, Node("aten.index.Tensor", (Ref(0), (None, Ref(0))), (), (), "")) == -1
