"""Pictures: what is drawn, and into which axes."""

import importlib

import numpy as np
import pytest

from stretto.ensemble import ece, plots, reliability, total_variance

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def pyplot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason="it draws")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda *args: pytest.fail("shown"))
    yield pyplot
    pyplot.close("all")


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def edges(band):
    """The lower and the upper edge of what ``fill_between`` filled, by place."""
    points = band.get_paths()[0].vertices
    by_place = {}
    for x, y in points:
        by_place.setdefault(float(x), []).append(float(y))
    return {x: (min(ys), max(ys)) for x, ys in by_place.items()}


def test_curves_of_members():
    values = np.array([[1.0, 3.0, np.nan], [2.0, np.nan, np.nan], [np.nan] * 3, [4.0, 6.0, 8.0]])
    ax = plots.member_curves([1, 2, 3, 4], values, label="loss", color="red")
    mean, *members = ax.lines
    assert mean.get_xdata().tolist() == [1, 2, 4] and mean.get_ydata().tolist() == [2, 2, 6]
    np.testing.assert_array_equal(np.stack([m.get_ydata() for m in members]).T, values)
    assert {x.get_color() for x in ax.lines} == {"red"} and labels(ax) == ["loss"]
    deviation = np.sqrt(8 / 3)
    found = edges(ax.collections[0])
    for place, expected in {1: (1, 3), 2: (2, 2), 4: (6 - deviation, 6 + deviation)}.items():
        assert found[place] == pytest.approx(expected)
    assert plots.member_curves([1, 2], np.ones((2, 1)), ax=ax) is ax
    assert len(ax.collections) == 1  # one member has no band
    with pytest.raises(ValueError, match=r"of shape \(points, members\), got \(2,\) and \(3, 1\)"):
        plots.member_curves([1, 2], np.ones((3, 1)))


def test_reliability_of_an_ensemble(pyplot):
    logits = RNG.normal(size=(3, 50, 4)).astype(np.float32)
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    y = RNG.integers(0, 4, size=50)
    ax = plots.reliability_diagram(probs, y, bins=5, label="raw")
    _, mean, *members = ax.lines
    for line, p in zip([mean, *members], [probs.mean(0), *probs], strict=True):
        share, confidence, accuracy = (np.asarray(a) for a in reliability(p, y, 5))
        np.testing.assert_allclose(line.get_xdata(), confidence[share > 0], rtol=1e-6)
        np.testing.assert_allclose(line.get_ydata(), accuracy[share > 0], rtol=1e-6)
    assert labels(ax) == [f"raw: ECE {float(ece(probs.mean(0), y, 5)):.3f}"]
    count = len(ax.lines)
    assert plots.reliability_diagram(probs[0], y, binning="mass", ax=ax) is ax
    assert len(ax.lines) == count + 1  # no second diagonal
    empty = plots.reliability_diagram(probs[0], y, ax=pyplot.subplots()[1])
    assert len(empty.lines) == 2 and empty.get_xlabel() == "confidence"
    with pytest.raises(ValueError, match=r"reliability_diagram: expected probs of shape"):
        plots.reliability_diagram(probs[0, 0], y)


def test_bands_of_a_regression():
    x = np.array([0.0, 2.0, 1.0])
    predictions, variances = RNG.normal(size=(4, 3)), RNG.uniform(1, 2, size=(4, 3))
    ax = plots.uncertainty_band(x, predictions, variances, deviations=1.0, label="mean")
    parts = total_variance(predictions, variances)
    inner, outer = (edges(band) for band in ax.collections)
    for i, place in enumerate(x):
        for found, variance in ((inner, parts.epistemic), (outer, parts.total)):
            mean, width = float(parts.mean[i]), float(variance[i]) ** 0.5
            assert found[place] == pytest.approx((mean - width, mean + width), rel=1e-5)
    assert ax.lines[0].get_xdata().tolist() == [0, 1, 2] and labels(ax) == ["mean"]
    assert len(plots.uncertainty_band(x, predictions).collections) == 1
    with pytest.raises(ValueError, match="uncertainty_band: expected x of shape"):
        plots.uncertainty_band(x[:2], predictions)
    with pytest.raises(ValueError, match="variances must not be negative"):
        plots.uncertainty_band(x, predictions, -variances)
