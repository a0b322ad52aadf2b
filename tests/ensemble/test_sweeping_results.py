"""The table of a sweep: ranked, and as a frame of pandas or polars."""

import sys

import numpy as np
import pytest

import stretto as st
from stretto.ensemble.sweeping import Sweep
from stretto.ensemble.training.fit_callbacks import Divergence
from stretto.ensemble.training.fitted import Fitted


def swept(mode="min"):
    """Three configurations of two members; the last diverged, the second was stopped."""
    rows = np.array([[5, 3, 1, 4, 1, 1], [4, 2, np.nan, np.nan, 1, np.nan]], np.float32)
    ensemble = st.Ensemble(lambda p, x: p * x, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    history = {"validation_loss": rows if mode == "min" else -rows}
    fitted = Fitted(ensemble, history, {2: 1, 3: 1}, {5: Divergence(1, "loss")}, None)
    tried = [{"rate": 0.1, "kind": "a"}, {"rate": 10.0, "kind": "b"}, {"rate": 1.0, "kind": "a"}]
    return Sweep(tried, fitted, (0, 0, 1, 1, 2, 2), "loss", mode)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_configurations_are_ranked_by_the_mean_of_their_best(mode):
    found = swept(mode)
    sign = 1 if mode == "min" else -1
    np.testing.assert_array_equal(sign * found.scores, [[4, 2], [1, 4], [1, np.nan]])
    assert found.table()[:2] == [
        {"rate": 10.0, "kind": "b", "score": sign * 2.5, "deviation": 1.5, "epochs": 1,
         "status": "stopped", "configuration": 1},
        {"rate": 0.1, "kind": "a", "score": sign * 3.0, "deviation": 1.0, "epochs": 2,
         "status": "finished", "configuration": 0},
    ]  # fmt: skip
    last = found.table()[2]
    assert last["status"] == "diverged" and np.isnan(last["score"])
    assert found.best == {"rate": 10.0, "kind": "b"}
    assert [float(m.params) for m in found.best_ensemble] == [3, 4]
    assert [float(m.params) for m in found.top(2)] == [3, 4, 1, 2]
    assert repr(found).startswith("Sweep of 3 configurations, 6 members; best loss")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    pytest.importorskip(library)
    frame = swept().to_frame(library)
    assert list(frame.columns) == list(swept().table()[0])
    assert frame["score"].to_list()[:2] == [2.5, 3.0]
    assert frame["kind"].to_list() == ["b", "a", "a"]


def test_without_a_library_of_tables_there_is_a_way_out(monkeypatch):
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pandas or polars is not installed; table\(\) gives"):
        swept().to_frame()
    with pytest.raises(ValueError, match="must be 'pandas' or 'polars', got 'excel'"):
        swept().to_frame("excel")
