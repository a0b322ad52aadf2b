"""Activations, softmaxes and gated units gives what PyTorch gives."""

from stretto.torch.table import activations
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(activations, least=16)
