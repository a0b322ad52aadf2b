"""The picture of a sweep has a panel for each hyperparameter."""

import sys

import pytest

from tests.ensemble.test_sweeping_results import swept


def test_a_panel_for_each_with_its_scale():
    pytest.importorskip("matplotlib")
    figure = swept().plot()
    rate, kind = figure.axes
    assert (rate.get_xlabel(), kind.get_xlabel(), rate.get_ylabel()) == ("rate", "kind", "loss")
    assert [t.get_text() for t in kind.get_xticklabels()] == ["b", "a"]
    points = {line.get_label(): line.get_xydata().tolist() for line in rate.get_lines()}
    assert points == {"finished": [[0.1, 3]], "stopped": [[10, 2.5]], "best": [[10, 2.5]]}
    figure.canvas.draw()


def test_wide_ranges_are_logarithmic():
    pytest.importorskip("matplotlib")
    found = swept()
    found.configurations[0]["rate"] = 0.001
    axes = found.plot().axes
    assert [a.get_xscale() for a in axes] == ["log", "linear"]
    assert axes[0].get_yscale() == "linear"
    found.fitted.history["validation_loss"][:, 2:4] = 0.01
    assert {a.get_yscale() for a in found.plot().axes} == {"log"}


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'stretto\[demo\]'"):
        swept().plot()
