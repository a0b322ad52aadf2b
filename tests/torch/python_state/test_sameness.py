"""Whether what a module holds is the same."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stretto.torch.python_state.holdings import equal, is_rebound, same, same_numbers  # noqa: E402


def test_same():
    x = torch.ones(2)
    for value in (1, "a", None, float("nan"), (1, [x]), {"a": x}, {1}, np.ones(2), torch.float32):
        assert same(value, value)
    assert same((1, [2]), (1, [2])) and same(float("nan"), float("nan"))
    for a, b in [(1, 1.0), (1, True), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (x, x.clone())]:
        assert not same(a, b)


def test_rebound():
    x, y = torch.ones(2), torch.zeros(2)
    assert is_rebound(x, y) and is_rebound((x, [1]), (y, [1])) and is_rebound({"a": x}, {"a": y})
    assert not is_rebound(x, torch.zeros(3)) and not is_rebound([x], [y, y])
    assert not is_rebound(1, 2) and not is_rebound(None, x)


def test_elements():
    x = torch.tensor([1.0, float("nan")])
    assert equal(x, x.clone()) and not equal(x, torch.ones(2))
    assert equal(torch.tensor([1]), torch.tensor([1])) and not equal(x, x[:1])
    assert same_numbers([np.ones(2), 3], [np.ones(2), 3])
    assert not same_numbers([np.ones(2)], [np.zeros(2)])
