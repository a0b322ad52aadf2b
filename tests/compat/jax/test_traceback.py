"""Files whose frames tracebacks leave out."""

import sys

from stretto.compat.jax import traceback


def test_excluded_files(monkeypatch):
    monkeypatch.setattr(traceback, "_exclude_paths", [])
    assert traceback.include_frame(sys._getframe())
    traceback.register_exclusion(__file__)
    assert not traceback.include_frame(sys._getframe())


def test_a_boundary_is_the_function_itself():
    assert traceback.api_boundary(max, repro_api_name="max")(1, 2) == 2
