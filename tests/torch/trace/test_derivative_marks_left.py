"""Marks in traces."""

import pytest

torch = pytest.importorskip("torch")

from stretto.torch.trace.derivative_marks import fitted, is_smooth, name_of  # noqa: E402


def test_marks_compute_nothing():
    x = torch.ones(2, 3)
    assert torch.ops.stretto.cotangent(x).shape == (2, 3)
    (y,) = torch.ops.stretto.with_backward("f", False, [x], [2 * x], [x], [x])
    assert torch.equal(y, 2 * x)
    assert torch.equal(torch.ops.stretto.hooked("f", x, x, x), x)


def test_gradients_are_fitted_as_pytorch_does():
    x = torch.ones(3, dtype=torch.float64)
    gradient = torch.ones(2, 3, dtype=torch.complex64)
    (found, none) = fitted("f", [gradient, None, None], [x, torch.ones(2)])
    assert none is None and found.dtype == torch.float64 and found.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="f has 1 inputs, and backward gave 2"):
        fitted("f", (x, x), [x])
    with pytest.raises(RuntimeError, match="not expandable"):
        fitted("f", torch.ones(2), [x])


def test_words():
    assert is_smooth(torch.ones(1)) and not is_smooth(torch.ones(1, dtype=torch.int64))
    assert not is_smooth(1.0)
    assert name_of(test_words) == "test_words" and name_of(torch.ones(1)) == "Tensor"
    assert name_of(lambda: None) == "test_words.<lambda>"
