"""The result of a training."""

import dataclasses
import importlib
import sys
import types

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import Divergence

X = np.linspace(-1, 1, 10, dtype=np.float32)


def fitted(count=2, **options):
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(count)])
    usual = {"epochs": 3, "batch_size": 5, "key": st.random.key(0), "progress": False}
    return e.fit(loss, (X, 3 * X), optim.sgd(0.5), **usual | options)


def test_what_is_in_it():
    result = fitted()
    assert list(result.history) == ["step", "epoch", "loss"]
    assert result.stopped == {} and result.diverged == {}
    assert result.state.step == 6 and len(result.ensemble) == 2


# As a table


def test_a_table_of_either_library():
    columns = {}
    fake = types.ModuleType("polars")
    fake.DataFrame = columns.update
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)  # as if not installed
        patch.setitem(sys.modules, "polars", fake)
        result = fitted()
        result.to_frame()
        assert list(columns) == ["step", "epoch", "member", "loss"]
        np.testing.assert_array_equal(columns["loss"], result.history["loss"].ravel())
        with pytest.raises(ModuleNotFoundError, match="needs pandas: pip install pandas"):
            result.to_frame(library="pandas")
        patch.setitem(sys.modules, "polars", None)
        with pytest.raises(ModuleNotFoundError, match="needs pandas or polars: pip install pandas"):
            result.to_frame()
        with pytest.raises(ValueError, match="library must be 'pandas' or 'polars', got 'dask'"):
            result.to_frame(library="dask")
        with pytest.raises(ValueError, match="form must be 'long' or 'wide'"):
            result.to_frame("tidy")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_real_table(library):
    module = pytest.importorskip(library, reason="it makes the table")
    result = fitted()
    frame = result.to_frame(library=library)
    assert isinstance(frame, module.DataFrame) and frame.shape == (6, 4)
    np.testing.assert_array_equal(frame["member"].to_numpy(), [0, 1] * 3)
    np.testing.assert_array_equal(frame["loss"].to_numpy(), result.history["loss"].ravel())
    wide = result.to_frame("wide", library=library)
    assert list(wide.columns) == ["step", "epoch", "loss/0", "loss/1"]
    np.testing.assert_array_equal(wide["loss/1"].to_numpy(), result.history["loss"][:, 1])


# As a picture


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="it draws")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def test_curves_of_training_and_validation(pyplot, monkeypatch):
    monkeypatch.setattr(pyplot, "show", lambda *args: pytest.fail("shown"))
    near = lambda member, x, y: (abs(member(x) - y) < 0.5).mean()
    result = fitted(validation=(X, X), metrics={"near": near})
    ax = result.plot()
    assert labels(ax) == ["training", "validation"]
    for line, name in zip(
        [x for x in ax.lines if x.get_label()[0] != "_"], ["loss", "validation_loss"], strict=True
    ):
        np.testing.assert_array_equal(line.get_xdata(), result.history["step"])
        np.testing.assert_allclose(line.get_ydata(), result.history[name].mean(1), rtol=1e-6)
    assert len(ax.lines) == 2 * (1 + 2) and len(ax.collections) == 2
    into = pyplot.subplots()[1]
    assert result.plot("near", ax=into) is into and labels(into) == ["validation"]
    ax.figure.canvas.draw()
    with pytest.raises(ValueError, match=r"by the name 'naer' \(did you mean 'near'\?\); there is"):
        result.plot("naer")


def test_where_members_ended(pyplot):
    result = fitted(3)
    history = {**result.history, "loss": np.array([[1, 2, np.nan], [3, 4, np.nan], [5, np.nan, 6]])}
    history["loss"][2, 2] = np.nan
    diverged = {1: Divergence(5, "w"), 2: Divergence(1, "loss")}
    ax = dataclasses.replace(result, history=history, stopped={0: 6}, diverged=diverged).plot()
    assert labels(ax) == ["training", "stopped", "diverged"]
    marks = [line for line in ax.lines if line.get_marker() in ("o", "x")]
    places = [(m.get_marker(), m.get_xdata()[0], m.get_ydata()[0]) for m in marks]
    assert places == [("o", 6, 5), ("x", 5, 4), ("x", 1, 0)]
    assert marks[2].get_transform() == ax.get_xaxis_transform()  # nothing is known: at the bottom
    ax.figure.canvas.draw()


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    words = r"Fitted.plot needs matplotlib: pip install 'stretto\[plots\]'"
    with pytest.raises(ModuleNotFoundError, match=words):
        fitted().plot()
