"""The lines of modules in errors: those of PyTorch, of Stretto and of Python are none."""

import os
import traceback

import pytest

import stretto

torch = pytest.importorskip("torch")

from stretto.torch.export.failures import (  # noqa: E402
    PYTORCH,
    current_line,
    is_of_module,
    last_of_module,
    written,
)


def frame(file, name="forward"):
    return traceback.FrameSummary(file, 3, name)


def test_the_line_that_is_run():
    assert "test_failures_source_lines.py, line" in current_line()
    assert current_line().endswith("in test_the_line_that_is_run")


def test_which_files_are_of_a_module():

    ours = [torch.nn.functional.__file__, stretto.__file__, os.__file__, "<string>"]
    assert not any(is_of_module(file) for file in ours)
    assert is_of_module(__file__) and is_of_module(pytest.__file__)


def test_the_last_of_a_module():
    assert last_of_module([]) is None and last_of_module([frame(os.__file__)]) is None
    frames = [frame("net.py"), frame("mode.py", "__torch_function__"), frame(os.__file__)]
    assert last_of_module(frames) is frames[0]
    assert written(frames[0]) == "net.py, line 3, in forward"
    assert written(frame(PYTORCH + "nn/functional.py", "pad")) == "functional.py, line 3, in pad"
