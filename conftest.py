"""What all tests share, doctests too: a folder for caches, which goes when they end."""

import atexit
import importlib.util
import os
import shutil
import signal
import tempfile

import pytest

# What starts tests in the background has them ignore interrupts, and so their processes would.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share the folder of the process that began
    os.environ["STRETTO_CACHE_DIR"] = tempfile.mkdtemp(prefix="stretto-tests-")
    atexit.register(shutil.rmtree, os.environ["STRETTO_CACHE_DIR"], ignore_errors=True)

PACKAGES = {
    "pytorch.md": "torch",
    "from-scikit-learn.md": "sklearn",
    "scikit-learn.md": "sklearn",
    "tabular-regression.md": "sklearn",
    "image-ensemble.md": "sklearn",
    "sweep.md": "sklearn",
}
"""Pages whose examples need a package that need not be there."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The page on devices needs several of them, like the tests so marked; others a package."""
    absent = {
        page: pytest.mark.skip(reason=f"{package} is not installed")
        for page, package in PACKAGES.items()
        if importlib.util.find_spec(package) is None
    }
    for item in items:
        if item.path.name == "devices.md":
            item.add_marker("devices")
        if item.path.name in absent:
            item.add_marker(absent[item.path.name])
        estimators = item.path.match("ensemble/estimators/*.py") and "src" in item.path.parts
        if estimators and "scikit-learn.md" in absent:
            item.add_marker(absent["scikit-learn.md"])
