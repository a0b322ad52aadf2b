"""What all tests share, doctests too: a folder for caches, which goes when they end."""

import atexit
import os
import shutil
import tempfile

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share the folder of the process that began
    os.environ["STRETTO_CACHE_DIR"] = tempfile.mkdtemp(prefix="stretto-tests-")
    atexit.register(shutil.rmtree, os.environ["STRETTO_CACHE_DIR"], ignore_errors=True)
