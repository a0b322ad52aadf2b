"""PyTorch's exporter is silent, and nobody else."""

import logging
import sys
import warnings

import pytest

from stretto.torch.quiet import quiet

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

import stretto as st  # noqa: E402


class Fails(nn.Module):
    def forward(self, x):
        print("mine", file=sys.stderr)
        return x if x.sum() > 0 else -x


def test_no_graphs_and_no_log(capfd, monkeypatch):
    monkeypatch.delenv("TORCH_LOGS", raising=False)
    with pytest.raises(Exception, match="data-dependent"):
        st.from_torch(Fails(), torch.ones(3, 4))
    err = capfd.readouterr().err
    assert set(err.split()) == {"mine"}


def test_levels_come_back():
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    before = [(x, x.level) for x in (logger, logging.getLogger("torch"))]
    with quiet(), quiet():
        assert not logger.isEnabledFor(logging.CRITICAL)
        assert not logging.getLogger("torch.made_inside").isEnabledFor(logging.CRITICAL)
        assert logging.getLogger("torchmetrics").isEnabledFor(logging.CRITICAL)
        assert logging.getLogger("mine").isEnabledFor(logging.ERROR)
    assert [(x, x.level) for x, _ in before] == before


def test_who_asks_for_the_log_gets_it(monkeypatch):
    monkeypatch.setenv("TORCH_LOGS", "dynamic")
    with quiet():
        assert logging.getLogger("torch").isEnabledFor(logging.CRITICAL)


def test_warnings_inside_are_dropped_and_ours_are_not():
    with quiet():
        warnings.warn("of PyTorch", stacklevel=1)
    with pytest.warns(UserWarning, match="half the precision"):
        st.from_torch(nn.Linear(2, 2).double(), torch.ones(3, 2).double())
