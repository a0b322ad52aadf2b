"""PyTorch's containers of arguments and results, as they come in."""

import collections
import dataclasses
import typing

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from stretto.torch.programs.signature import NOTHING  # noqa: E402

Pair = collections.namedtuple("Pair", "first second")


class Typed(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: torch.Tensor | None = None
    index: torch.Tensor | None = None


torch.export.register_dataclass(Output)


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


X = torch.arange(12.0).reshape(3, 4).sin()


@pytest.mark.parametrize(
    "function, fields",
    [
        (lambda x: x.max(1), ("values", "indices")),
        (lambda x: x.min(1), ("values", "indices")),
        (lambda x: x.sort(1), ("values", "indices")),
        (lambda x: x.topk(2), ("values", "indices")),
        (lambda x: x.median(1), ("values", "indices")),
        (lambda x: x.kthvalue(2, 1), ("values", "indices")),
        (lambda x: x.cummax(1), ("values", "indices")),
        (lambda x: torch.aminmax(x, dim=1), ("min", "max")),
        (lambda x: torch.linalg.slogdet(x @ x.T + torch.eye(3)), ("sign", "logabsdet")),
        (lambda x: Pair(x, 2 * x), ("first", "second")),
        (lambda x: Typed(x, 2 * x), ("x", "y")),
    ],
)
def test_named_tuples(function, fields):
    ours = st.from_torch(Calls(function), X)
    theirs = function(X)
    for f in (ours, st.jit(ours)):
        found = f(X.numpy())
        assert found._fields == fields and type(found).__name__ == type(theirs).__name__
        for name in fields:
            np.testing.assert_allclose(getattr(found, name), getattr(theirs, name), rtol=1e-5)
    mapped = st.vmap(ours)(X.numpy()[None].repeat(2, 0))
    np.testing.assert_allclose(mapped[0][1], theirs[0], rtol=1e-5)


def test_named_tuples_inside_and_as_arguments():
    ours = st.from_torch(Calls(lambda x: {"pair": Pair(x, [Typed(x + 1, x + 2)])}), X)
    found = ours(X.numpy())["pair"]
    np.testing.assert_allclose(found.second[0].y, X + 2)
    ours = st.from_torch(Calls(lambda pair: pair.first - pair.second), (Pair(X, 3 * X),))
    x = X.numpy()
    for given in (Pair(x, 3 * x), (x, 3 * x)):
        np.testing.assert_allclose(ours(given), -2 * X, rtol=1e-6)
    alone = st.from_torch(Calls(lambda pair: pair.first), Pair(X, X))
    np.testing.assert_allclose(alone(Pair(x, 3 * x)), X)
    with pytest.raises(TypeError, match=r"Pair with the fields \['first', 'second'\].*got 3 elem"):
        ours((x, x, x))


def test_dataclasses():
    ours = st.from_torch(Calls(lambda x: Output(x, index=2 * x)), X)
    found = ours(X.numpy())
    assert found._fields == ("logits", "index", "hidden") and found.hidden is None
    np.testing.assert_allclose(found.index, 2 * X)
    ours = st.from_torch(Calls(lambda out: out.logits + out.hidden), (Output(X, X),))
    x = X.numpy()
    np.testing.assert_allclose(ours(Output(x, 3 * x)), 4 * X, rtol=1e-6)
    with pytest.raises(TypeError, match="index: expected None, as in the example"):
        ours(Output(x, x, x))


def test_other_containers():
    def function(x):
        return {
            "ordered": collections.OrderedDict(b=x, a=2 * x),
            "default": collections.defaultdict(list, {"z": x}),
            "ends": collections.deque([x, 3 * x]),
            "size": x.view(-1).shape,
        }

    found = st.from_torch(Calls(function), X, dynamic_batch=False)(X.numpy())
    assert list(found["ordered"]) == ["b", "a"] and list(found["default"]) == ["z"]
    np.testing.assert_allclose(found["ordered"]["a"], 2 * X)
    assert isinstance(found["ends"], list) and found["size"] == (12,)
    ours = st.from_torch(Calls(lambda xs: xs[0] + xs[1]), (collections.deque([X, X]),))
    x = X.numpy()
    np.testing.assert_allclose(ours(collections.deque([x, x])), 2 * X)


def test_files(tmp_path):
    ours = st.from_torch(Calls(lambda x: (x.max(1), Output(x))), X)
    st.torch.save(tmp_path / "net.safetensors", ours)
    again = st.torch.load(tmp_path / "net.safetensors")
    assert again.evaluation_program == ours.evaluation_program
    values, out = again(X.numpy())
    np.testing.assert_allclose(values.values, X.max(1).values)
    assert out.hidden is None and NOTHING.size == 0


def test_containers_without_names_are_refused():
    class Bag:
        def __init__(self, parts):
            self.parts = parts

    torch.utils._pytree.register_pytree_node(Bag, lambda b: (b.parts, None), lambda p, _: Bag(p))
    with pytest.raises(NotImplementedError, match="is a Bag, and it is not known what its parts a"):
        st.from_torch(Calls(lambda x: Bag([x, x])), X)

    @dataclasses.dataclass
    class Hidden:
        _x: torch.Tensor

    torch.export.register_dataclass(Hidden)
    with pytest.raises(NotImplementedError, match=r"the fields \['_x'\] cannot be attributes"):
        st.from_torch(Calls(Hidden), X)
