"""Containers: order, names, what they refuse, and that what they hold is trained."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn


class Add(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = nn.Parameter(float(n))

    def forward(self, x):
        return 2 * x + self.n


def numbers(container):
    return [float(m.n) for m in container]


def test_sequential():
    model = nn.Sequential(Add(1), Add(2))
    assert float(model(0.0)) == 4
    assert list(model.state_dict()) == ["0.n", "1.n"]
    named = nn.Sequential({"a": Add(1), "b": Add(2)})
    assert list(named.state_dict()) == ["a.n", "b.n"] and float(named(0.0)) == 4
    assert named[0] is named.a and named[-1] is named.b and len(named) == 2
    assert float(named[1:](1.0)) == 4
    assert float(nn.Sequential()(3.0)) == 3
    named.append(Add(3))
    assert list(named.state_dict()) == ["a.n", "b.n", "2.n"]
    named[0] = Add(7)
    assert numbers(named) == [7, 2, 3] and float(named.a.n) == 7
    del named[1]
    assert list(named.state_dict()) == ["0.n", "1.n"] and numbers(named) == [7, 3]
    clash = nn.Sequential({"1": Add(1)})
    with pytest.raises(KeyError, match="Sequential has an attribute '1' already"):
        clash.append(Add(2))
    with pytest.raises(TypeError, match="Sequential: expected modules, got list"):
        nn.Sequential([Add(1)])
    with pytest.raises(TypeError, match=r"register_module|must be a module, got function"):
        nn.Sequential({"f": lambda x: x})


@pytest.mark.parametrize("kind", [nn.ModuleList, nn.ParameterList])
def test_lists(kind):
    make = Add if kind is nn.ModuleList else float
    read = numbers if kind is nn.ModuleList else lambda c: [float(x) for x in c]
    held = kind([make(0), make(1)])
    assert held.append(make(2)) is held and held.extend([make(3)]) is held
    assert len(held) == 4 and read(held) == [0, 1, 2, 3]
    held.insert(1, make(9))
    assert read(held) == [0, 9, 1, 2, 3]
    held.insert(-1, make(8))
    assert read(held) == [0, 9, 1, 2, 8, 3]
    assert read([held.pop()]) == [3] and read([held.pop(0)]) == [0]
    held[0], held[-1] = make(5), make(6)
    assert read(held) == [5, 1, 2, 6]
    del held[1:3]
    assert read(held) == [5, 6]
    part = held.eval()[::-1]
    assert type(part) is kind and read(part) == [6, 5] and not part.training
    assert [n.split(".")[0] for n, _ in held.named_parameters()] == ["0", "1"]
    for i in (2, -3):
        with pytest.raises(IndexError, match=f"{kind.__name__}: index {i}, but it has 2 elements"):
            held[i]
    with pytest.raises(TypeError):
        held["0"]
    with pytest.raises(TypeError, match=r"expected modules|must be an array"):
        held.insert(0, "words")
    assert read(held) == [5, 6]
    with pytest.raises(NotImplementedError, match=f"{kind.__name__} has no forward"):
        held(1)


def test_module_list_in_a_model():
    class Model(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = nn.ModuleList(Add(i) for i in range(depth))
            self.scales = nn.ParameterList([snp.ones(()), snp.ones(())])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x * self.scales[0]

    model = Model(12)
    assert list(model.state_dict())[:3] == ["layers.0.n", "layers.1.n", "layers.2.n"]
    assert numbers(model.layers) == list(range(12))
    assert float(st.jit(lambda m, x: m(x))(model, 1.0)) == float(model(1.0))
    slopes = st.grad(lambda m: m(1.0))(model)
    assert [float(m.n) for m in slopes.layers] == [2.0**i for i in range(11, -1, -1)]
    again = Model(12)
    again.load_state_dict(model.state_dict())
    stacked = st.stack([model, again])
    np.testing.assert_allclose(st.vmap(lambda m: m(1.0))(stacked), [model(1.0)] * 2)
    with pytest.raises(ValueError, match=r"part at member\.layers: a ModuleList with attributes"):
        st.stack([model, Model(2)])


@pytest.mark.parametrize("kind", [nn.ModuleDict, nn.ParameterDict])
def test_dicts(kind):
    make = Add if kind is nn.ModuleDict else float
    held = kind({"b": make(1), "a": make(2)})
    assert list(held) == held.keys() == ["b", "a"] and len(held) == 2
    assert "a" in held and "c" not in held
    assert held["a"] is held.a and [k for k, _ in held.items()] == ["b", "a"]
    assert held.values() == [held["b"], held["a"]]
    held["c"] = make(3)
    held["a"] = make(4)
    held.update([("d", make(5))])
    held.update(kind({"e": make(6)}))
    assert list(held) == ["b", "a", "c", "d", "e"]
    del held["b"]
    taken = held.pop("a")
    assert float(taken.n if kind is nn.ModuleDict else taken) == 4 and list(held) == ["c", "d", "e"]
    for name in ("b", "training"):
        with pytest.raises(KeyError, match=f"{kind.__name__} has no '{name}'; it has .*'c', 'd'"):
            held[name]
        with pytest.raises(KeyError, match="has no"):
            del held[name]
    with pytest.raises(TypeError, match=r"expected modules, got str|must be an array"):
        held["f"] = "words"
    with pytest.raises(AttributeError, match="method or property called keys"):
        held["keys"] = make(1)
    with pytest.raises(KeyError, match="has an attribute 'training' already"):
        held["training"] = make(1)
    with pytest.raises(ValueError, match="without dots"):
        held["a.b"] = make(1)
    assert held.training is True and list(held) == ["c", "d", "e"]


def test_dicts_are_trees():
    heads = nn.ModuleDict({"x": Add(1), "y": Add(2)})
    doubled = st.tree.map(lambda p: 2 * p, heads)
    assert [float(m.n) for m in doubled.values()] == [2, 4]
    assert float(st.jit(lambda h: h["x"](1.0) + h["y"](1.0))(heads)) == 7
