"""What all tests share, doctests too: a folder for caches, which goes when they end."""

import atexit
import importlib.util
import os
import shutil
import tempfile

import pytest

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share the folder of the process that began
    os.environ["STRETTO_CACHE_DIR"] = tempfile.mkdtemp(prefix="stretto-tests-")
    atexit.register(shutil.rmtree, os.environ["STRETTO_CACHE_DIR"], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The page on devices needs several of them, like the tests so marked; that on PyTorch it."""
    without_pytorch = importlib.util.find_spec("torch") is None
    for item in items:
        if item.path.name == "devices.md":
            item.add_marker("devices")
        if item.path.name == "pytorch.md" and without_pytorch:
            item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))
