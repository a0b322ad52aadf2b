"""Bases of layers that apply a function: settings in words, reductions that a loss accepts."""

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
