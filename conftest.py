"""Set what all tests share, doctests too: a folder for caches, and what their pages need."""

import atexit
import gc
import importlib
import importlib.util
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from tests.pytorch import needs_pytorch

pytest_plugins = ["pytester", "tests.times"]

# What starts tests in the background has them ignore interrupts, and so their processes would.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

KEPT = Path(__file__).parent / "build" / "tests"
"""Where compiled programs are kept from run to run: at most 1 GiB, as ``disk_cache_size`` says.

A program's key has its text, its options, and the versions of Stretto, jaxlib and the processor
(``xla/disk.py``), so one that was made by other sources is not taken for it.
"""

CHOSEN = "CACHE_DIR_OF_TESTS"
"""The environment variable that says that the folder was chosen."""


def pytest_addoption(parser):
    """Add the option that has everything compiled anew."""
    parser.addoption("--cold", action="store_true", help="begin with no compiled programs on disk")


def pytest_configure(config):
    """Choose the folder for caches; workers, and what tests start, share it."""
    if CHOSEN in os.environ:
        return
    folder = None if config.getoption("cold") else kept()
    if folder is None:
        folder = tempfile.mkdtemp(prefix="stretto-tests-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[CHOSEN] = os.environ["STRETTO_CACHE_DIR"] = folder


def kept():
    """Return the folder that stays; ``None`` where other users could write to it."""
    try:
        KEPT.mkdir(0o700, parents=True, exist_ok=True)
        # Not above: tests/conftest.py sets what the package reads when it is imported.
        importlib.import_module("stretto._engine.core.files").check_way(str(KEPT))
    except OSError:
        return None
    return str(KEPT)


PACKAGES = {
    "export.md": "onnxruntime sklearn",
    "merging.md": "cmaes",
    "pytorch.md": "torch",
    "from-scikit-learn.md": "sklearn",
    "scikit-learn.md": "sklearn",
    "tabular-regression.md": "sklearn",
    "image-ensemble.md": "sklearn",
    "sweep.md": "sklearn",
}
"""Pages whose examples need packages that need not be there."""


PYTORCH = importlib.util.find_spec("torch") is not None
"""Whether PyTorch is here."""


def pytest_ignore_collect(collection_path):
    """Leave out the modules that import PyTorch, and their tests, where it is not installed."""
    ours = not PYTORCH and collection_path.suffix == ".py"
    return True if ours and needs_pytorch(collection_path) else None


def pytest_report_header():
    """Say what is left out."""
    return None if PYTORCH else "PyTorch is not installed: make torch-tests runs what needs it"


def pytest_collection_finish():
    """Take what was collected for old: tests that collect garbage need not look through it.

    With 31,000 tests collected, each such look took 0.2 s of processor time.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the page on devices, which needs several, and pages that need a package."""
    absent = {
        page: pytest.mark.skip(reason=f"{package} is not installed")
        for page, packages in PACKAGES.items()
        for package in packages.split()
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
        if item.path.match("src/stretto/merge/searching.py") and "merging.md" in absent:
            item.add_marker(absent["merging.md"])
