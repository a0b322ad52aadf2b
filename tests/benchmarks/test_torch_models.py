"""The comparison of whole PyTorch models: errors, and what becomes of a model."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import stretto as st  # noqa: E402
from benchmarks.torch_models import comparing, reference, report  # noqa: E402
from benchmarks.torch_models.comparing import BOUNDS, NEGLIGIBLE, Figures, distance  # noqa: E402
from benchmarks.torch_models.model import Call, Model  # noqa: E402


def test_errors_are_relative_to_the_largest_element():
    expected = {"a": np.array([1.0, 100.0]), "b": np.array([0.0])}
    assert distance(expected, expected) == (0.0, "")
    assert distance({"a": np.array([2.0, 100.0]), "b": np.zeros(1)}, expected) == (0.01, "a")
    error, where = distance({"a": np.array([1.0, 100.0]), "b": np.array([1e-9])}, expected)
    assert where == "b" and error == pytest.approx(1e-9 / (100 * NEGLIGIBLE))


@pytest.mark.parametrize("wrong", [{}, {"a": np.ones(3)}, {"a": np.array([1.0, np.nan])}])
def test_what_is_lacking_or_not_finite_is_infinitely_far_off(wrong):
    assert distance(wrong, {"a": np.ones(2)}) == (np.inf, "a")
    assert distance({"a": np.ones(2)}, wrong)[0] == np.inf


@pytest.mark.parametrize("compiled", [True, False])
def test_a_model(compiled):
    model = Model("linear", lambda: Call(torch.nn.Linear(2, 3), (torch.randn(4, 2),)), compiled)
    with st.config(enable_x64=True):
        figures = comparing.look_at(model, ["evaluation", "training"])
    assert not figures.problems() and not figures.refused
    assert set(figures.errors) == set(BOUNDS) - {"buffers"}
    assert torch.get_default_dtype() == torch.float32


def test_what_is_made_has_no_dropout_and_no_zeros():
    layers = torch.nn.Dropout(0.3), torch.nn.LSTM(2, 3, 2, dropout=0.5), torch.nn.Linear(3, 2)
    torch.nn.init.zeros_(layers[2].weight)
    module = Model("layers", lambda: Call(torch.nn.ModuleList(layers))).made().module
    assert module[0].p == module[1].dropout == 0.0
    assert all([x.any() for x in module.parameters()])


def test_what_pytorch_does_not_export_is_refused_and_what_fails_is_a_problem():
    class Asks(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) if not self.training or x.sum() > 0 else x

    asks = Model("asks", lambda: Call(Asks(2, 2), (torch.ones(3, 2),)))
    fails = Model("fails", lambda: Call(torch.nn.Linear(3, 2), (torch.ones(3, 2),)))
    with st.config(enable_x64=True):
        refused = comparing.look_at(asks, ["evaluation", "training"])
        failed = comparing.look_at(fails, ["training"])
    assert set(refused.errors) == {"float32", "outputs"} and not refused.problems()
    assert "data-dependent" in refused.refused and "Error" in failed.failed
    assert failed.problems() == [f"fails: {failed.failed}"]


def test_reports():
    good = Figures("good", dict.fromkeys(BOUNDS, (1e-15, "x")))
    bad = Figures("bad", {"loss": (0.5, "loss")}, refused="Why: so")
    assert good.problems() == [] and "loss 5e-01 off" not in report.line(bad)
    assert bad.problems() == ["bad: loss 5.0e-01 off, in loss; the bound is 1e-09"]
    assert "loss 5e-01" in report.line(bad) and "Why: so" in report.line(bad)
    read = json.loads(report.to_json([good, bad]))
    assert [model["name"] for model in read["models"]] == ["good", "bad"]
    page = report.page([good, bad], "torch 2")
    assert "| bad |  |  | 5e-01 |" in page and "- bad: `Why: so`" in page
    rough = Figures("rough", {"parameters": (3e-6, "x")}, own_error=2e-6)
    assert rough.problems() == []
    page = report.page([rough], "torch 2")
    assert "| rough |  |  |  |  |  | 3e-06† |" in page and "It is: rough 2e-06." in page
    rough.own_error = 2e-7
    assert len(rough.problems()) == 1


def test_hardsigmoid_has_its_derivative_in_the_reference():
    model = Model("gate", lambda: Call(torch.nn.Hardsigmoid(), (torch.ones(2),)))
    with reference.in_double(model.made()) as call:
        x = torch.ones(2, requires_grad=True)
        with reference.Exact():
            call.module(x).sum().backward()
    assert float(x.grad[0]) == 1 / 6
