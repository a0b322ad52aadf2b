"""What PyTorch's exporter traces only with help, and that the help ends with the export."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch._subclasses import fake_impls  # noqa: E402 (only where PyTorch is)

from stretto.torch.tracing import traceable  # noqa: E402
from tests.torch.beside_pytorch import Calls  # noqa: E402


def test_shapes_are_known_while_it_lasts():
    known = fake_impls.op_implementations_dict
    before = dict(known)
    with pytest.raises(ZeroDivisionError), traceable():
        assert torch.ops.aten.linalg_lstsq.default in known
        raise ZeroDivisionError
    assert known == before


def test_shapes_are_pytorchs():
    calls = [
        (lambda a, b, how=how: torch.linalg.lstsq(a, b, driver=how), (a, b))
        for how in ("gels", "gelsy", "gelsd")
        for a, b in [
            (torch.randn(5, 3), torch.randn(5, 2)),
            (torch.randn(3, 5), torch.randn(3, 2)),
            (torch.randn(2, 5, 3), torch.randn(2, 5)),
        ]
    ]
    for function, args in calls:
        found = st.from_torch(Calls(lambda *xs, f=function: tuple(f(*xs))), args)(
            *[x.numpy() for x in args]
        )
        for ours, theirs in zip(found, function(*args), strict=True):
            assert ours.shape == tuple(theirs.shape)
            assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-4)
