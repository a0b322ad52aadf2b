"""Capsules and memory by the DLPack protocol: what is lent, to whom, and what is refused.

`tests/conformance/test_dlpack.py` has the protocol as users of arrays see it.
"""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.core.types import array_type
from stretto._engine.xla.array import CPU_PAIR, UNSAID, export_dlpack, import_dlpack, read_only

F32 = array_type((4,), np.dtype(np.float32))
CALLER = (lambda x: x.__dlpack__()).__code__  # code that names the method
IN_C = (lambda x: [np.from_dlpack(x)]).__code__


def exported(host, stream=UNSAID, version=(1, 0), device=UNSAID, copy=UNSAID, caller=CALLER):
    return export_dlpack(
        host, array_type(host.shape, host.dtype), stream, version, device, copy, caller
    )


class Lent:
    """What gives a capsule that was made beforehand."""

    def __init__(self, capsule, device=CPU_PAIR):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def address(x):
    return x.__array_interface__["data"][0]


def numbers():
    return np.arange(4, dtype=np.float32)


def test_a_copy_that_others_may_write():
    host = numbers()
    got = np.from_dlpack(Lent(exported(host)))
    np.testing.assert_array_equal(got, host)
    assert address(got) != address(host) and host.flags.writeable


@pytest.mark.parametrize("options", [{"copy": False}, {"device": None, "copy": None}])
def test_the_memory_itself_is_marked_read_only(options):
    """For whoever asks for no copy, and for NumPy, whose call the second is."""
    host = numbers()
    caller = IN_C if "device" in options else CALLER
    got = np.from_dlpack(Lent(exported(host, **options, caller=caller)))
    assert address(got) == address(host)
    assert not got.flags.writeable and not host.flags.writeable


def test_who_names_the_method_is_not_numpy():
    host = numbers()
    got = np.from_dlpack(Lent(exported(host, device=None, copy=None, caller=CALLER)))
    assert address(got) != address(host)


@pytest.mark.parametrize("version", [None, (0, 8)])
def test_consumers_that_know_no_mark_are_given_copies(version):
    host = numbers()
    assert "dltensor" in repr(exported(host, version=version))
    with pytest.raises(BufferError, match="cannot mark memory as read-only"):
        exported(host, version=version, copy=False)


def test_dtypes_that_numpy_has_no_code_for():
    host = np.ones(4, ml_dtypes.bfloat16)
    assert "dltensor" in repr(exported(host))
    with pytest.raises(BufferError, match=r"bfloat16\[4\] cannot be shared .*NumPy cannot export"):
        exported(host, copy=False)


def test_only_the_cpu():
    host = numbers()
    assert exported(host, stream=None, device=CPU_PAIR) is not None
    with pytest.raises(ValueError, match="__dlpack__: stream must be None on the CPU; got 1"):
        exported(host, stream=1)
    with pytest.raises(BufferError, match=r"the array is on the CPU, \(1, 0\); got \(2, 0\)"):
        exported(host, device=(2, 0))
    with pytest.raises(BufferError, match=r"from_dlpack: expected an array on the CPU.*move it"):
        import_dlpack(Lent(None, (2, 0)), None)


def test_a_view_that_is_never_written_again():
    owner = numbers()
    view = read_only(owner[1:])
    assert not view.flags.writeable and not owner.flags.writeable
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        view.flags.writeable = True


def test_taken_memory_is_shared_where_it_stays_as_it_is():
    owner = numbers()
    assert address(import_dlpack(owner, None)) != address(owner)
    assert address(import_dlpack(owner, False)) == address(owner)
    frozen = read_only(numbers())
    assert address(import_dlpack(frozen, None)) == address(frozen)
    assert address(import_dlpack(frozen, True)) != address(frozen)
    view = owner[:]
    view.flags.writeable = False  # what it is a view of can still be written
    assert address(import_dlpack(view, None)) != address(owner)


def test_what_numpy_cannot_read_is_copied_by_jaxlib():
    host = np.arange(4).astype(ml_dtypes.bfloat16)
    got = import_dlpack(Lent(exported(host)), None)
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, host)
    with pytest.raises(BufferError, match="from_dlpack: memory cannot be shared: "):
        import_dlpack(Lent(exported(host)), False)


def test_masked_arrays_are_refused():
    with pytest.raises(TypeError, match="from_dlpack"):
        import_dlpack(np.ma.masked_array([1.0], [True]), None)
