"""Exports by PyTorch in turn, in silence."""

import logging
import sys
import warnings

import pytest

from stretto.torch.export.attempts import quiet

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)
from torch.export import Dim  # noqa: E402

import stretto as st  # noqa: E402
from stretto.torch.export.attempts import (  # noqa: E402
    any_batch,
    export,
    relaxed,
)


class Squares(nn.Module):
    """Asks PyTorch, in C++, whether sizes are 1."""

    def forward(self, x):
        return x.transpose(0, 1).reshape(-1) ** 2


class Reads(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


X = torch.ones(3, 4)


def sizes(exported):
    (x,) = [node for node in exported.program.graph.nodes if node.op == "placeholder"]
    return [isinstance(n, int) for n in x.meta["val"].shape]


def test_any_batch():
    assert any_batch(X) == {0: Dim.AUTO}
    assert [any_batch(x) for x in (X[:1], torch.ones(()), 3, None)] == [None] * 4


def test_it_asks_for_ones_first():
    found = export(Squares(), (X,), {}, {"x": {0: Dim.AUTO}}, True)
    assert found.least == 1 and sizes(found) == [False, True]


def test_names_of_dimensions_are_no_reason_to_take_two_for_granted():
    found = export(Squares(), (X,), {}, {"x": {0: Dim("n", max=9)}}, False)
    assert found.least == 1 and sizes(found) == [False, True]


def test_the_sizes_of_the_example():
    assert sizes(export(Squares(), (X,), {}, None, True)) == [True, True]


def test_what_no_attempt_can_do():
    for shapes, fix in (({"x": {0: Dim.AUTO}}, True), ({"x": {0: Dim.AUTO}}, False), (None, True)):
        with pytest.raises(Exception, match=r"data-dependent|Eq\("):
            export(Reads(), (X,), {}, shapes, fix)


def test_names_become_hints():
    n = Dim("n", min=3)
    found = relaxed({"x": {0: n, 1: None}, "ys": [(Dim("m", max=9),), {2: Dim.AUTO}, 4, 2 * n]})
    assert found["x"] == {0: Dim.AUTO(min=3), 1: None}
    assert found["ys"][0] == (Dim.AUTO(max=9),) and found["ys"][1:3] == [{2: Dim.AUTO}, 4]
    assert not isinstance(found["ys"][3], Dim)


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
