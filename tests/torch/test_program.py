"""Programs: equality, calls, and JSON."""

import numpy as np
import pytest

from stretto.torch.program import Program
from tests.torch.programs import counting, linear

X = np.ones((4, 3), np.float32)
ARRAYS = {"layer.weight": np.ones((2, 3), np.float32), "layer.bias": np.float32([0, 1])}


def test_equal_by_what_they_compute():
    assert linear() == linear() and hash(linear()) == hash(linear())
    assert linear() != linear(scale=2.0) and linear() != linear(0.5) and linear() != 1
    assert repr(linear()).startswith("<Program of 2 operations, ")


def test_results_and_updates():
    results, updates = linear(scale=2.0)("Net", ARRAYS.__getitem__, (X,), {})
    np.testing.assert_array_equal(results["y"], [[6, 8]] * 4)
    assert updates == {}
    result, updates = counting()("Net", {"count": np.int32(4)}.__getitem__, (), {"x": 3.0})
    assert float(result) == 3 and int(updates["count"]) == 5


def test_json_and_back():
    program = linear(0.5)
    again = Program.from_json(program.to_json(), program.constants)
    assert again == program
    with pytest.raises(ValueError, match="constants are not there: scale"):
        Program.from_json(program.to_json(), {})
    with pytest.raises(ValueError, match="not a program"):
        Program.from_json({"graph": 1}, {})
