"""Elements by index: gathers, scatters, lookups, masks gives what PyTorch gives."""

from stretto.torch.table import aten_indexing
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_indexing, least=14)
