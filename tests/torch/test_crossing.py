"""Tensors as arrays: dtypes, layouts, copies."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import pjrt

torch = pytest.importorskip("torch")

from stretto.torch.crossing import borrowed, given, to_numpy, to_torch  # noqa: E402

DTYPES = "float64 float32 float16 bfloat16 complex64 int64 int32 int16 int8 uint8 bool"


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_dtypes(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).T
    array = to_numpy(tensor, "f")
    assert array.dtype.name == dtype and array.shape == (3, 2)
    np.testing.assert_array_equal(array.astype(complex), tensor.to(torch.complex128))


def test_a_copy():
    tensor = torch.ones(3)
    array = to_numpy(tensor, "f")
    tensor.zero_()
    np.testing.assert_array_equal(array, [1, 1, 1])


def test_views_that_are_not_written_out():
    tensor = torch.complex(torch.ones(2), torch.ones(2)).conj()
    np.testing.assert_array_equal(to_numpy(tensor, "f"), [1 - 1j, 1 - 1j])


def test_what_is_not_dense():
    with pytest.raises(TypeError, match=r"expected dense tensors.*to_dense"):
        to_numpy(torch.ones(2, 2).to_sparse(), "f")


def array_of(dtype, shape=(300, 300)):
    """An array that a compiled program computed, in memory of its own."""
    return st.jit(lambda x: (x + 1).astype(dtype))(snp.ones(shape))


@pytest.mark.parametrize("dtype", f"{DTYPES} uint16 uint32 float8_e4m3fn float8_e5m2".split())
def test_arrays_go_and_come_back_bit_for_bit(dtype):
    with st.config(enable_x64=True):
        for make in (given, lambda array, caller: to_torch(np.asarray(array), caller)):
            array = array_of(dtype)
            bits = array.tobytes()
            tensor = make(array, "f")
            assert str(tensor.dtype) == f"torch.{dtype}" and tensor.shape == (300, 300)
            back = borrowed(tensor, "f")
            assert back.dtype.name == dtype and back.tobytes() == bits


def test_what_a_program_computed_is_given_away_with_its_memory():
    array = array_of("float32")
    place = pjrt.to_host(array.to_buffer()).ctypes.data
    tensor = given(array, "f")
    assert tensor.data_ptr() == place
    del array
    assert tensor.add_(1).eq(3).all()


def test_what_lies_with_numpy_is_copied():
    array = snp.array([1.0, 2.0])
    given(array, "f").zero_()
    to_torch(np.asarray(array), "f").zero_()
    assert array.tolist() == [1, 2]


def test_memory_is_borrowed_and_lives_as_long_as_the_array():
    tensor = torch.arange(4.0)
    array = borrowed(tensor, "f")
    assert np.asarray(array).ctypes.data == tensor.data_ptr()
    del tensor
    gc.collect()
    torch.zeros(1000)
    assert array.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(6.0).reshape(2, 3).T,
        lambda: torch.arange(6.0)[::2],
        lambda: torch.ones(()).expand(3, 2),
        lambda: torch.ones(2, requires_grad=True),
        lambda: torch.ones(2, requires_grad=True) * 2,
        lambda: torch.ones(0, 3),
        lambda: torch.tensor(3.0),
        lambda: torch.tensor(True),
        lambda: torch.tensor([1 + 2j]).conj(),
        lambda: torch.tensor([1 + 2j]).conj().imag,
        lambda: torch.ones(2, 3, dtype=torch.bfloat16).T,
    ],
)
def test_tensors_of_all_layouts(make):
    tensor = make()
    array = borrowed(tensor, "f")
    assert array.shape == tensor.shape
    wide = torch.complex64 if tensor.is_complex() else torch.float32
    theirs = tensor.detach().to(wide).resolve_conj().resolve_neg().numpy()
    np.testing.assert_array_equal(np.asarray(array).astype(theirs.dtype), theirs)


def test_64_bits():
    assert borrowed(torch.arange(3), "f").dtype == np.int32
    with pytest.raises(TypeError, match=r"f: float64 would become float32: .*enable_x64"):
        borrowed(torch.ones(3).double(), "f")
    with st.config(enable_x64=True):
        assert borrowed(torch.arange(3), "f").dtype == np.int64


def test_tensors_that_are_elsewhere():
    with pytest.raises(TypeError, match=r'f: expected tensors on the CPU, got one on meta.*"cpu"'):
        borrowed(torch.ones(3, device="meta"), "f")


def test_tensors_that_numpy_has_no_array_for():
    for cross in (lambda x: to_numpy(x, "from_torch"), lambda x: borrowed(x, "from_torch")):
        with pytest.raises(TypeError, match=r"from_torch: .*got a Tensor of torch.float8_e4m3fnuz"):
            cross(torch.ones(2).to(torch.float8_e4m3fnuz))


def test_nothing_is_left_behind():
    """10,000 crossings each way, of 40 kB: a twentieth of them kept would be 20 MB."""
    add = st.jit(lambda x: x + 1)
    ones = snp.ones((100, 100))
    for back in (
        lambda: borrowed(torch.ones(100, 100), "f").to_buffer(),
        lambda: given(add(ones), "f"),
    ):
        back()
        before, seen = resident(), []
        for k in range(10_000):
            crossed = back()
            if k % 100 == 0 and isinstance(crossed, torch.Tensor):
                seen.append(weakref.ref(crossed))
        del crossed
        gc.collect()
        assert resident() - before < 20e6
        assert not any([x() is not None for x in seen])


def resident():
    """The bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
