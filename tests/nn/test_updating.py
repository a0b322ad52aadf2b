"""Loading by name: all or nothing, dtypes kept, what is tied stays tied."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.nn.updating import named_arrays


class Affine(nn.Module):
    def __init__(self, n_in=3, n_out=2, bias=True, *, key):
        super().__init__()
        self.weight = nn.Parameter(st.random.normal(key, (n_out, n_in)))
        self.bias = nn.Parameter(snp.ones(n_out)) if bias else None
        self.register_buffer("count", snp.zeros((), int))
        self.register_buffer("cache", snp.zeros(2), persistent=False)


class Pair(nn.Module):
    def __init__(self, key=None):
        super().__init__()
        one, two = st.random.split(st.random.PRNGKey(1) if key is None else key)
        self.one = Affine(3, 4, key=one)
        self.two = Affine(4, 2, bias=False, key=two)


class Tied(nn.Module):
    """One module at two places, and one array at two places."""

    def __init__(self):
        super().__init__()
        self.a = Affine(3, 3, key=st.random.PRNGKey(0))
        self.b = self.a
        self.c = Affine(3, 3, key=st.random.PRNGKey(0))
        self.c.weight = self.a.weight


def same(a, b):
    assert st.tree.structure(a) == st.tree.structure(b)
    for x, y in zip(st.tree.leaves(a), st.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_state_dict_round_trip():
    one, other = Pair(), Pair(key=st.random.PRNGKey(9))
    state = one.state_dict()
    assert list(state) == ["one.weight", "one.bias", "one.count", "two.weight", "two.count"]
    assert next(iter(one.state_dict("m"))) == "m.one.weight"
    keys = other.load_state_dict({k: np.asarray(v, np.float64) for k, v in state.items()})
    assert keys == ([], []) and keys.missing_keys == []
    same(other, one)
    assert other.one.count.dtype == np.int32


def test_loading_is_all_or_nothing():
    model = Pair()
    before = {**model.state_dict()}
    bad = {"one.weight": np.zeros((4, 3)), "one.bias": np.zeros(5), "more": 1, "two.weight": 2.0}
    with pytest.raises(ValueError, match=r"Pair\.load_state_dict: nothing was loaded\. missing: "
                       r"one\.count, two\.count; unexpected: more; one\.bias: expected shape "
                       r"\(4,\), got \(5,\) of float32\[5\]; two\.weight: expected shape \(2, 4\), "
                       r"got \(\)") as caught:  # fmt: skip
        model.load_state_dict(bad)
    assert "strict=False" not in str(caught.value)  # shapes would still differ
    same(model.state_dict(), before)
    with pytest.raises(
        ValueError, match=r"missing: one.bias.*strict=False loads the names in comm"
    ):
        model.load_state_dict({"one.weight": np.zeros((4, 3))})
    with pytest.raises(TypeError, match="expected a dictionary of names and arrays, got list"):
        model.load_state_dict([1])
    found = model.load_state_dict({"one.weight": np.zeros((4, 3)), "more": 1}, strict=False)
    assert found.missing_keys == ["one.bias", "one.count", "two.weight", "two.count"]
    assert found.unexpected_keys == ["more"]
    assert not model.one.weight.any() and model.two.weight.any()
    with pytest.raises(ValueError, match="expected shape"):
        model.load_state_dict({"one.bias": np.zeros(5)}, strict=False)


def test_tied_arrays_stay_tied_when_loaded():
    model = Tied()
    state = {k: np.array(v) + 1 for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    assert model.c.weight is model.a.weight
    state["c.weight"] = np.zeros((3, 3))
    model.load_state_dict(state)
    assert not model.c.weight.any() and model.a.weight.any()


def test_loading_inside_a_transformation():
    model = Tied()
    state = model.state_dict()

    def total(state):
        made = model.clone()
        made.load_state_dict(state)
        return sum(x.sum() for x in made.state_dict().values())

    assert float(st.jit(total)(state)) == pytest.approx(float(total(state)), rel=1e-5)
    slopes = st.grad(lambda w: total({**state, "c.weight": w}))(state["c.weight"])
    np.testing.assert_array_equal(slopes, np.ones((3, 3)))


def test_places():
    model = Tied()
    here = named_arrays(model, "m")
    assert [n for n in here if n.endswith("weight")] == ["m.a.weight", "m.b.weight", "m.c.weight"]
    assert "m.a.cache" in here and "m.a.bias" in here
    owner, attribute, array = here["m.b.weight"]
    assert owner is model.a and attribute == "weight" and array is model.a.weight
