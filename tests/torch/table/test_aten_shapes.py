"""Shapes: views, permutations, parts, repetition, padding gives what PyTorch gives."""

from stretto.torch.table import aten_shapes
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_shapes, least=42)
