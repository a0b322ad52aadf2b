"""The history grows by an entry, and what was not measured is NaN."""

import numpy as np

from stretto.ensemble.training.history import with_entry


def test_entries():
    history = with_entry({}, 10, 1, {"loss": np.array([1, 2], np.float32)}, 2)
    later = {"validation_loss": np.array([3, 4], np.float32)}
    history = with_entry(history, 20, 2, later, 2)
    assert {n: x.tolist() for n, x in history.items() if n in ("step", "epoch")} == {
        "step": [10, 20],
        "epoch": [1, 2],
    }
    nan = np.nan
    np.testing.assert_array_equal(history["loss"], [[1, 2], [nan, nan]])
    np.testing.assert_array_equal(history["validation_loss"], [[nan, nan], [3, 4]])
    assert all(history[n].dtype == np.float32 for n in ("loss", "validation_loss"))
