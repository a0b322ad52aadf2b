"""Memory shared with NumPy by DLPack, in both directions, and PyTorch where it is installed."""

import ctypes
import pickle

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import DonatedArrayError, TracedValueError
from tests.conformance import standard
from tests.conformance.control import bits


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", standard.KINDS["all"])
def test_numpy_reads_the_very_memory(dtype):
    with bits(64):
        for shape in ((), (3,), (2, 3), (0, 2)):
            x = snp.ones(shape, dtype=dtype)
            y = np.from_dlpack(x)
            assert (y.dtype, y.shape) == (x.dtype, shape)
            assert np.array_equal(y, np.asarray(x))
            assert not y.flags.writeable
            if x.size:
                assert address(y) == address(x)


def test_results_of_compiled_programs_are_shared_too():
    x = st.jit(lambda v: v + 1)(snp.arange(6.0))
    y = np.from_dlpack(x)
    assert y.tolist() == [1, 2, 3, 4, 5, 6]
    assert address(y) == address(x)


@pytest.mark.parametrize("dtype", standard.KINDS["all"])
def test_arrays_of_numpy_are_copied_where_they_can_be_written(dtype):
    with bits(64):
        y = np.ones((2, 3), dtype)
        x = snp.from_dlpack(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        y[:] = 0
        assert np.asarray(x).all()


def test_read_only_memory_is_shared():
    y = np.arange(4, dtype=np.float32)
    y.flags.writeable = False
    assert address(snp.from_dlpack(y)) == address(y)
    assert address(snp.from_dlpack(y, copy=True)) != address(y)


def test_a_read_only_view_of_memory_that_its_owner_can_write_is_copied():
    owner = np.arange(4, dtype=np.float32)
    view = owner[:]
    view.flags.writeable = False
    x = snp.from_dlpack(view)
    owner[0] = 9
    assert x.tolist() == [0, 1, 2, 3]
    raw = bytearray(owner.tobytes())
    x = snp.from_dlpack(np.frombuffer(memoryview(raw).toreadonly(), np.float32))
    raw[:] = bytes(16)
    assert x.tolist() == [9, 1, 2, 3]
    held = np.frombuffer(owner.tobytes(), np.float32)
    assert address(snp.from_dlpack(held)) == address(held)


def test_later_writes_are_seen_on_request_alone():
    y = np.arange(4, dtype=np.float32)
    shared, copied = snp.from_dlpack(y, copy=False), snp.from_dlpack(y)
    y[0] = 9
    assert (shared[0], copied[0]) == (9, 0)


def test_memory_is_shared_on_request():
    y = np.arange(4, dtype=np.float32)
    x = snp.from_dlpack(y, copy=False)
    assert address(x) == address(y)
    assert snp.sum(x) == 6
    assert st.jit(snp.sum)(x) == 6


def test_strides_are_followed():
    y = np.arange(12, dtype=np.float32).reshape(3, 4)[::-1, ::2]
    x = snp.from_dlpack(y, copy=False)
    assert x.tolist() == y.tolist()
    assert st.jit(lambda v: v * 1)(x).tolist() == y.tolist()


def test_an_array_of_our_own():
    x = snp.ones(2)
    assert snp.from_dlpack(x) is x
    assert snp.from_dlpack(x, copy=True) is not x


def test_sixty_four_bits_become_thirty_two():
    y = np.arange(3.0)
    assert snp.from_dlpack(y).dtype == snp.float32
    with pytest.raises(BufferError, match="enable_x64"):
        snp.from_dlpack(y, copy=False)


def test_arguments_of_the_protocol():
    x = snp.ones(2)
    assert x.__dlpack_device__() == (1, 0)
    x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)
    x.__dlpack__(max_version=(1, 1), copy=True)
    x.__dlpack__(stream=None, dl_device=None, copy=None)
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="CPU"):
        x.__dlpack__(dl_device=(2, 0))
    # The versions before 1.0 cannot say that memory is read-only: who asks for them gets a copy.
    x.__dlpack__()
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(copy=False)


def test_a_consumer_of_the_first_version_gets_memory_of_its_own():
    x = snp.ones(2)

    class Early:
        def __dlpack__(self, **options):
            return x.__dlpack__()

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    assert address(np.from_dlpack(Early())) != address(x)


def test_what_is_refused():
    with pytest.raises(TypeError, match="asarray"):
        snp.from_dlpack([1, 2])

    class Elsewhere:
        def __dlpack__(self, **options):
            raise AssertionError("not to be asked")

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(BufferError, match="CPU first"):
        snp.from_dlpack(Elsewhere())
    with pytest.raises(TracedValueError, match="DLPack"):
        st.jit(np.from_dlpack)(snp.ones(2))
    x = snp.ones(3)
    st.jit(lambda v: v + 1, donate_argnums=0)(x)
    with pytest.raises(DonatedArrayError):
        x.__dlpack__()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_dtypes_that_numpy_has_no_code_for(dtype):
    x = snp.asarray([1.0, 2.0, -0.5], dtype=dtype)

    class Foreign:
        """As PyTorch hands out such memory."""

        def __dlpack__(self, **options):
            return x.__dlpack__()

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    y = snp.from_dlpack(Foreign())
    assert y.dtype == x.dtype
    assert y.tolist() == x.tolist()
    with pytest.raises(BufferError, match="dtype"):
        x.__dlpack__(max_version=(1, 0), copy=False)
    with pytest.raises(BufferError, match="shared"):
        snp.from_dlpack(Foreign(), copy=False)


def test_pytorch_in_both_directions():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for dtype in ("bool", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"):
        x = snp.asarray([[0, 1], [1, 1]], dtype=dtype)
        there = torch.from_dlpack(x)
        assert there.dtype == getattr(torch, dtype)
        assert there.tolist() == x.tolist()
        back = snp.from_dlpack(there)
        assert back.dtype == x.dtype
        assert back.tolist() == x.tolist()
    there = torch.ones(3)
    assert address(snp.from_dlpack(there, copy=False)) == there.data_ptr()
    for dtype in ("float32", "bfloat16"):
        x = snp.ones(3, dtype=dtype)
        for take in (torch.from_dlpack, torch.utils.dlpack.from_dlpack, torch.asarray):
            take(x).add_(1)  # PyTorch heeds no mark: it gets memory of its own
            assert x.tolist() == [1, 1, 1]
        torch.from_dlpack(x, device="cpu").add_(1)
        torch.from_dlpack(x, copy=True).add_(1)
        assert x.tolist() == [1, 1, 1]
    x = snp.ones(3)
    assert torch.from_dlpack(x, copy=False).data_ptr() == address(x)


class _Tensor(ctypes.Structure):
    """The protocol's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """The protocol's DLManagedTensorVersioned."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Managed(ctypes.Structure):
    """The protocol's DLManagedTensor, before version 1.0."""

    _fields_ = (("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_READ_ONLY, _IS_COPIED = 1, 2


def lent(capsule):
    """The address and the flags of the memory in a capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if "versioned" in repr(capsule):
        held = _Versioned.from_address(get(capsule, b"dltensor_versioned"))
        return held.tensor.data + held.tensor.byte_offset, held.flags
    held = _Managed.from_address(get(capsule, b"dltensor"))
    return held.tensor.data + held.tensor.byte_offset, None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stream": None},
        {"max_version": (1, 0)},
        {"max_version": (1, 1), "dl_device": (1, 0)},
        {"max_version": (1, 0), "dl_device": (1, 0), "copy": None},
        {"max_version": (1, 0), "dl_device": None, "copy": None},
        {"max_version": (1, 0), "copy": True},
        {"copy": True},
    ],
)
def test_a_consumer_that_writes_what_it_is_lent(dtype, options):
    """It heeds no mark; the array stays, and what is lent to it is said to be a copy."""
    for x in (snp.ones(4, dtype=dtype) + 1, st.jit(snp.sort)(snp.full(2000, 2, dtype=dtype))):
        capsule = x.__dlpack__(**options)
        at, flags = lent(capsule)
        ctypes.memset(at, 0x55, x.size * x.dtype.itemsize)
        assert x.tolist() == [2] * x.size
        assert flags in (None, _IS_COPIED)
        del capsule


def test_what_is_lent_on_request_is_marked():
    x = snp.ones(4)
    at, flags = lent(x.__dlpack__(max_version=(1, 0), copy=False))
    assert (at, flags) == (address(x), _READ_ONLY)


ARRAYS = {
    "result": lambda: snp.arange(6.0) + 1,
    "view": lambda: (snp.arange(6.0) + 1).reshape(2, 3).T,
    "slice": lambda: (snp.arange(6.0) + 1)[1:4],
    "splat": lambda: snp.ones(3),
    "number": lambda: snp.array(3.0),
    "bfloat16": lambda: snp.ones(3, dtype="bfloat16") * 2,
    "compiled": lambda: st.jit(lambda x: snp.sort(snp.sin(x)))(snp.arange(2000.0)),
    "compiled bfloat16": lambda: st.jit(snp.sort)(snp.ones(2000, dtype="bfloat16")),
    "unpickled": lambda: pickle.loads(pickle.dumps(snp.arange(3.0))),
    "of NumPy": lambda: snp.asarray(np.arange(3.0)),
    "of DLPack": lambda: snp.from_dlpack(np.arange(3, dtype=np.int32), copy=False),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("door", [np.asarray, np.from_dlpack, lambda x: x.__array__(copy=False)])
def test_no_view_can_be_made_writable(name, door):
    x = ARRAYS[name]()
    if door is np.from_dlpack and x.dtype == snp.bfloat16:
        door = np.asarray  # the protocol has no code for it that NumPy knows
    view = door(x)
    for part in (view, view[...], view.T, view.view(), view[None]):
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.flags.writeable = True
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.setflags(write=True)
        base = part
        while isinstance(base, np.ndarray):
            assert not base.flags.writeable
            base = base.base
    with pytest.raises((ValueError, TypeError)):
        np.copyto(view, 0)
    if view.dtype.isbuiltin == 1:
        assert memoryview(view).readonly
    assert view.__array_interface__["data"][1]


def test_the_buffer_beside_a_pickle_is_copied():
    buffers = []
    data = pickle.dumps(snp.arange(3.0), protocol=5, buffer_callback=buffers.append)
    raw = [bytearray(b) for b in buffers]
    x = pickle.loads(data, buffers=raw)
    for b in raw:
        b[:] = bytes(len(b))
    assert raw
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["result", "compiled"])
def test_a_donation_leaves_what_was_lent(name):
    x = ARRAYS[name]()
    lent_to_numpy = [np.asarray(x), np.from_dlpack(x), np.asarray(x)[::2]]
    before = [v.copy() for v in lent_to_numpy]
    y = st.jit(lambda v: snp.sort(v) * 2 + 1, donate_argnums=0)(x).block_until_ready()
    assert x.is_deleted()
    assert y.size == before[0].size
    for v, b in zip(lent_to_numpy, before, strict=True):
        np.testing.assert_array_equal(v, b)
