"""The history grows by an entry, and what was not measured is NaN."""

import numpy as np
import pytest

from stretto.ensemble.training.fitted import columns_of, with_entry


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


def test_columns():
    history = {
        "step": np.array([5, 9], np.int32),
        "epoch": np.array([1, 2], np.int32),
        "loss": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    }
    rows = {n: x.tolist() for n, x in columns_of(history, "long", "f").items()}
    assert rows == {
        "step": [5, 5, 5, 9, 9, 9],
        "epoch": [1, 1, 1, 2, 2, 2],
        "member": [0, 1, 2, 0, 1, 2],
        "loss": [1, 2, 3, 4, 5, 6],
    }
    rows = {n: x.tolist() for n, x in columns_of(history, "wide", "f").items()}
    assert rows == {
        "step": [5, 9],
        "epoch": [1, 2],
        "loss/0": [1, 4],
        "loss/1": [2, 5],
        "loss/2": [3, 6],
    }
    assert [len(x) for x in columns_of({}, "long", "f").values()] == [0, 0, 0]
    with pytest.raises(ValueError, match="f: form must be 'long' or 'wide', got 'tidy'"):
        columns_of(history, "tidy", "f")
