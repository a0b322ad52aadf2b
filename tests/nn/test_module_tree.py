"""What a module holds: names, order, what is shared, and what is not there."""

import pytest

from stretto import nn
from tests.nn.models import Pair, Tied


def test_names_and_order():
    model = Pair()
    assert [n for n, _ in model.named_modules()] == ["", "one", "two"]
    assert [n for n, _ in model.named_modules("m")] == ["m", "m.one", "m.two"]
    assert list(model.modules()) == [model, model.one, model.two]
    assert list(model.children()) == [model.one, model.two]
    names = ["one.weight", "one.bias", "two.weight"]
    assert [n for n, _ in model.named_parameters()] == names
    assert [n for n, _ in model.named_parameters("p")] == [f"p.{n}" for n in names]
    assert list(model.named_parameters(recurse=False)) == []
    assert [x.shape for x in model.parameters()] == [(4, 3), (4,), (2, 4)]
    assert [n for n, _ in model.named_buffers()] == [
        "one.count",
        "one.cache",
        "two.count",
        "two.cache",
    ]
    assert len(list(model.buffers())) == 4
    assert model.get_submodule("") is model and model.get_submodule("two") is model.two


@pytest.mark.parametrize("target", ["three", "one.weight", "gone"])
def test_no_such_module(target):
    model = Pair()
    model.gone = nn.Module()
    model.gone = None
    with pytest.raises(AttributeError, match=f"'{target}': .*has no module"):
        model.get_submodule(target)


def test_what_is_shared_is_given_once():
    model = Tied()
    assert [n for n, _ in model.named_modules()] == ["", "a", "c"]
    assert [n for n, _ in model.named_parameters()] == ["a.weight", "a.bias", "c.bias"]
    assert "b.weight" in model.state_dict() and "c.weight" in model.state_dict()
