"""Bases of layers that apply a function: settings in words, reductions that a loss accepts."""

import inspect
import pickle

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.nn.function_layers import FunctionLayer


class Scaled(FunctionLayer):
    function = staticmethod(lambda x, factor, weight: x * factor * weight)
    settings = ("factor", "weight")

    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.register_buffer("weight", snp.array([1.0, 2.0]))


def test_settings():
    layer = Scaled(3)
    assert layer(snp.ones(2)).tolist() == [3, 6]
    assert str(layer) == "Scaled(factor=3)"
    assert st.tree.structure(layer) != st.tree.structure(Scaled(4))


def test_messages():
    with pytest.raises(ValueError, match="MSELoss: reduction must be one of none, mean, sum; got"):
        nn.MSELoss("batchmean")


def test_a_subclass_accepts_the_reductions_of_its_base():
    class Divergence(nn.KLDivLoss):
        pass

    x = snp.log(snp.array([[0.5, 0.5], [0.5, 0.5]]))
    assert float(Divergence(reduction="batchmean")(x, snp.exp(x))) == 0
    with pytest.raises(ValueError, match="Divergence: reduction must be one of none, mean, sum, b"):
        Divergence(reduction="median")


def test_words_are_those_of_the_function():
    doc = nn.HuberLoss.__doc__
    assert doc.startswith("Square small differences, and take multiples of large ones.\n")
    assert "\n    delta: where the two meet.\n" in doc and "inplace" not in doc
    assert "A call takes ``input``: predictions" in doc
    assert "nn.HuberLoss``; see ``functional.huber_loss``" in doc
    assert '>>> st.nn.HuberLoss(reduction="none", delta=2.0)(x, snp.zeros(2))' in doc
    assert "weight: a factor for each class, (C,); kept as a buffer." in nn.NLLLoss.__doc__
    assert nn.Dropout.__doc__.splitlines()[2] == "In evaluation mode the output is the input."


def test_constructors_have_signatures_of_their_own():
    of = lambda cls: str(inspect.signature(cls)).replace("'", "")
    assert of(nn.Tanh) == "() -> None" and of(nn.ReLU) == "(inplace: bool = False) -> None"
    assert of(nn.MSELoss) == "(reduction: str = mean) -> None"
    assert of(nn.LeakyReLU) == "(negative_slope: float = 0.01, inplace: bool = False) -> None"


@pytest.mark.parametrize(
    "layer", [nn.LeakyReLU(0.5), nn.CrossEntropyLoss(snp.ones(3)), nn.MaxPool2d([2, 2]), nn.GELU()]
)
def test_layers_are_pickled(layer):
    again = pickle.loads(pickle.dumps(layer))
    assert str(again) == str(layer) and type(again) is type(layer)
    assert st.tree.structure(again) == st.tree.structure(layer)
    assert isinstance(again, nn.Module)


def test_order_of_settings_in_words():
    assert str(nn.GaussianNLLLoss()) == "GaussianNLLLoss(reduction='mean', full=False, eps=1e-06)"
    assert str(nn.MaxPool2d([2, 3])) == (
        "MaxPool2d(kernel_size=(2, 3), stride=(2, 3), padding=0, dilation=1, "
        "return_indices=False, ceil_mode=False)"
    )
