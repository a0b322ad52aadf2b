"""Elements by index: gathers, scatters, lookups, masks gives what PyTorch gives."""

from stretto.torch.table import indexing
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(indexing, least=14)
