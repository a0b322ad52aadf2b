"""Notes on errors of PyTorch's exporter: they fit the error, and name the line."""

import contextlib
import warnings

import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence  # noqa: E402

with warnings.catch_warnings(action="ignore"):
    SCRIPTED = torch.jit.script(nn.Linear(4, 4))


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Other:
    def __init__(self, x):
        self.x = x


def branches(x):
    return x if x.sum() > 0 else -x


def repeats(x):
    for _ in range(int(x.sum())):
        x = x * 2
    return x


def allocates(x):
    return torch.zeros(int(x.sum()))


def leaves(x):
    return x + torch.from_numpy(x.detach().numpy())


def returns(x):
    return Other(x)


def masks(x):
    mask = None if torch.compiler.is_exporting() else torch.ones(3)
    return x * mask[:, None]


def calls(x):
    return SCRIPTED(x)


@pytest.mark.parametrize(
    "function, line, words",
    [
        (branches, "return x if x.sum() > 0 else -x", "which way it goes depends on the values"),
        (repeats, "for _ in range(int(x.sum())):", "a size, or a number of Python, of the values"),
        (allocates, "return torch.zeros(int(x.sum()))", "a size, or a number of Python, of the v"),
        (leaves, "return x + torch.from_numpy(x.detach().numpy())", "it leaves PyTorch for NumPy"),
        (returns, "", "register the class: a dataclass by torch.export.register_dataclass"),
        (
            masks,
            "return x * mask[:, None]",
            "its own code raises this. Where a plain call does not",
        ),
        (calls, "return SCRIPTED(x)", "it calls a function or a module of TorchScript"),
    ],
)
def test_reasons(function, line, words):
    with pytest.raises(Exception, match=r".") as caught:
        st.from_torch(Calls(function), torch.ones(3, 4))
    (note,) = caught.value.__notes__
    assert note.startswith("from_torch: PyTorch cannot export this Calls") and words in note
    assert f"`{line}`: " in note if line else " at " not in note
    assert "test_failures_failure_reasons.py" in note if line else True


def test_the_line_is_not_that_of_a_mode():
    class Passes(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Passes(), pytest.raises(Exception, match=r".") as caught:
        st.from_torch(Calls(branches), torch.ones(3, 4))
    assert "`return x if x.sum() > 0 else -x`: which way" in "".join(caught.value.__notes__)


class Packed(nn.Module):
    """A recurrent network over sequences of given lengths."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        packed, _ = self.lstm(packed)
        return pad_packed_sequence(packed)[0]


def test_packed_sequences():
    example = torch.ones(3, 2, 4), torch.tensor([3, 2])
    with contextlib.suppress(NotImplementedError):  # unless they come in, or are refused by name
        try:
            st.from_torch(Packed(), example)
        except (RuntimeError, TypeError, ValueError) as error:
            assert "packed sequences have sizes that depend on" in "".join(error.__notes__)
    with pytest.raises(Exception, match=r".") as caught:
        st.from_torch(nn.LSTM(4, 4), pack_sequence([torch.ones(3, 4), torch.ones(2, 4)]))
    assert "packed sequences have sizes that depend on" in "".join(caught.value.__notes__)


def test_our_own_refusals_have_no_note():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, x):
            with torch.no_grad():
                self.w.mul_(0.9)
            return x * self.w

    with pytest.raises(NotImplementedError, match="writes to its parameter w when it") as caught:
        st.from_torch(Writes(), torch.ones(3, 4))
    assert not getattr(caught.value, "__notes__", [])
