"""What NumPy's files say of themselves, checked before memory is asked for."""

import io
import zipfile

import numpy as np
import pytest

from stretto.numpy.files import Archive, check_header, reading


def saved(array, version=(1, 0)):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


def header(text, version=b"\x01\x00"):
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text.encode()


def checked(data, **options):
    file = io.BytesIO(b"before" + data)
    file.seek(6)
    with reading("x.npy"):
        found = check_header(file, "x.npy", 10_000, **options)
    assert file.tell() == 6  # it stays where it was
    return found


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_an_array(version):
    assert checked(saved(np.arange(6.0).reshape(2, 3), version)) is True
    assert checked(saved(np.zeros((0, 4)), version)) is True


def test_an_archive():
    file = io.BytesIO()
    np.savez(file, a=np.arange(3))
    assert checked(file.getvalue()) is False


@pytest.mark.parametrize(
    "data, message",
    [
        (b"hello world", "expected numbers in NumPy's format; this file has another"),
        (saved(np.arange(4.0))[:-1], r"it is truncated: float64\[4\] takes 32 bytes, but there ar"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}\n"),
         r"its header says that the shape is \(-1,\)"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (1 << 60,)}\n"), "damaged"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,)}\n"),
         "it is truncated"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n"), "pickled objects"),
        (header("nonsense\n"), "its header is damaged"),
        (b"\x93NUMPY\x01\x00\xff\xff{}", "takes 65535 bytes, but there are"),
        (b"\x93NUMPY\x07\x00\x02\x00{}", "version"),
    ],
)  # fmt: skip
def test_what_is_no_array(data, message):
    with pytest.raises(ValueError, match=f"load: x.npy: .*{message}"):
        checked(data)


def test_nothing_at_all():
    with pytest.raises(EOFError, match=r"load: x\.npy is empty: there is no array in it"):
        checked(b"")


def test_less_room_than_the_file_has():
    data = saved(np.arange(4.0))
    assert checked(data, left=len(data)) is True
    with pytest.raises(ValueError, match="it is truncated"):
        checked(data, left=len(data) - 1)


@pytest.mark.parametrize(
    "error, kind, message",
    [
        (ValueError("it is odd"), ValueError, "load: x: it is odd"),
        (ValueError("load: y: said before"), ValueError, "load: y: said before"),
        (EOFError("short"), ValueError, "load: x: it is damaged: short"),
        (zipfile.BadZipFile("bad"), ValueError, "load: x: it is damaged: bad"),
        (OSError(22, "seek"), ValueError, "load: x: it is damaged"),
        (OSError(2, "gone"), FileNotFoundError, "gone"),
        (KeyError("other"), KeyError, "other"),
    ],
)
def test_errors_of_damaged_files_have_the_name(error, kind, message):
    with pytest.raises(kind, match=message), reading("x"):
        raise error


def archive(file, own=False):
    return Archive(np.lib.npyio.NpzFile(file), file, "x.npz", 10_000, own)


def test_arrays_of_an_archive_are_read_one_by_one():
    file = io.BytesIO()
    np.savez_compressed(file, a=np.arange(3), b=np.eye(2))
    file.seek(0)
    found = archive(file, own=True)
    assert found.names == ["a", "b"]
    np.testing.assert_array_equal(found.read("b"), np.eye(2))
    with pytest.raises(KeyError, match=r"x.npz has no array 'c'; it has \['a', 'b'\]"):
        found.read("c")
    found.close()
    assert file.closed


def test_an_archive_whose_array_claims_too_much():
    file = io.BytesIO()
    huge = header("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,)}\n")
    with zipfile.ZipFile(file, "w") as members:
        members.writestr("a.npy", huge)
    file.seek(0)
    with pytest.raises(ValueError, match=r"load: a in x\.npz: it is truncated"):
        archive(file).read("a")
