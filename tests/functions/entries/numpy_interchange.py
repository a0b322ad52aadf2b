"""What `numpy/files.py` gives."""

from tests.functions.table import without_entry

without_entry(
    "takes another library's memory: tests/conformance/test_dlpack.py", "numpy.from_dlpack"
)
