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
    """The page on devices needs several of them, like the tests so marked; others a package."""
    without_pytorch = importlib.util.find_spec("torch") is None
    without_sklearn = importlib.util.find_spec("sklearn") is None
    for item in items:
        if item.path.name == "devices.md":
            item.add_marker("devices")
        if item.path.name == "pytorch.md" and without_pytorch:
            item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))
        estimators = item.path.match("ensemble/estimators/*.py") and "src" in item.path.parts
        if (estimators or item.path.name == "scikit-learn.md") and without_sklearn:
            item.add_marker(pytest.mark.skip(reason="scikit-learn is not installed"))
