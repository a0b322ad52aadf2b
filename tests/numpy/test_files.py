"""Files: there and back, in NumPy's hands too, and what is refused."""

import io
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def there_and_back(x):
    file = io.BytesIO()
    snp.save(file, x)
    file.seek(0)
    return snp.load(file)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_there_and_back(dtype):
    x = snp.array([[1, 0], [2, 3]]).astype(dtype)
    back = there_and_back(x)
    assert back.dtype == x.dtype and back.tolist() == x.tolist()


def test_by_name_and_in_numpys_hands(tmp_path):
    x = snp.array([1.5, 2.5])
    snp.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)
    np.save(tmp_path / "wide.npy", np.array([1.0, 2.0]))
    assert snp.load(tmp_path / "wide.npy").dtype == snp.float32
    for save in (snp.savez, snp.savez_compressed):
        save(tmp_path / "several.npz", x, b=x.astype(snp.bfloat16))
        with snp.load(tmp_path / "several.npz") as arrays:
            assert arrays.files == ["b", "arr_0"] or arrays.files == ["arr_0", "b"]
            assert len(arrays) == 2 and set(arrays) == {"b", "arr_0"}
            assert arrays["b"].dtype == snp.bfloat16 and arrays["arr_0"].tolist() == [1.5, 2.5]
            assert repr(arrays).startswith("ArrayFile of ")


def test_numbers_keep_their_bits():
    for x in (1e-8, np.float64(1e-8), np.array([1e-8, 1.0])):
        file = io.BytesIO()
        snp.save(file, x)
        back = np.load(io.BytesIO(file.getvalue()))
        assert back.dtype == np.float64 and np.array_equal(back, x)
        assert there_and_back(x).dtype == snp.float32


def test_bytes_text_and_iterators(tmp_path):
    (tmp_path / "raw").write_bytes(np.array([1, 2, 3], np.int16).tobytes())
    assert snp.fromfile(tmp_path / "raw", "int16", offset=2).tolist() == [2, 3]
    assert snp.frombuffer(np.array([1.0, 2.0]).tobytes()).tolist() == [1, 2]
    half = snp.frombuffer(snp.ones(2, snp.bfloat16).tobytes(), snp.bfloat16)
    assert half.dtype == snp.bfloat16 and half.tolist() == [1, 1]
    assert snp.fromiter(iter([1, 2, 3]), float, 2).tolist() == [1, 2]
    assert snp.fromstring("1 2.5", sep=" ").tolist() == [1, 2.5]


def npy(header, data=b"", version=1):
    """A file of NumPy's format with this header."""
    text = header if isinstance(header, bytes) else repr(header).encode()
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def said(shape=(2,), descr="<f4", order=False):
    return {"descr": descr, "fortran_order": order, "shape": shape}


HUGE = 1 << 40
DAMAGED = {
    "truncated": (
        npy(said(), bytes(7)),
        r"is truncated: float32\[2\] takes 8 bytes, but there are 7",
    ),
    "huge": (npy(said((HUGE, HUGE))), "is truncated: .* takes 4835703278458516698824704 bytes"),
    "large": (npy(said((1 << 34,)), bytes(8)), "takes 68719476736 bytes, but there are 8"),
    "negative": (npy(said((-1,)), bytes(8)), r"header says that the shape is \(-1,\)"),
    "twice negative": (npy(said((-2, -1)), bytes(8)), r"shape is \(-2, -1\)"),
    "no shape": (npy({"descr": "<f4"}, bytes(8)), "header is damaged"),
    "a shape of text": (npy(said("ab"), bytes(8)), "header is damaged"),
    "no type": (npy(said(descr="?!"), bytes(8)), "header is damaged"),
    "code": (npy(b"__import__('os').abort()"), "header is damaged"),
    "nested": (npy(b"(" * 9000), "header is damaged"),
    "unhashable": (npy(b"{[]: 1}"), "header is damaged"),
    "no end": (npy(b"{'descr': '" + b"''"), "header is damaged"),
    "no text": (npy(b"\xff" * 90), "header is damaged"),
    "long header": (npy(b" " * 20_000), "header is damaged: .*large and may not be safe"),
    "header beyond the end": (b"\x93NUMPY\2\0" + b"\xff\xff\xff\x0f{}", "header is damaged"),
    "version": (npy(said(), bytes(8), version=9), "has version|can be read|header"),
    "objects": (npy(said(descr="|O"), bytes(8)), "pickled objects, which are not read"),
    "hidden objects": (npy(said(descr=[("a", "<f4"), ("b", "O")]), bytes(32)), "pickled objects"),
    "axes": (npy(said((1,) * 70), bytes(4)), "maximum supported dimension|too many"),
    "another": (b"GIF89a and more", "this file has another"),
}


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header")
@pytest.mark.parametrize("way", ["by name", "open", "in an archive"])
@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused_in_words(tmp_path, case, way):
    data, words = DAMAGED[case]
    path = tmp_path / "file"
    path.write_bytes(data)
    given = path
    if way == "open":
        given = io.BytesIO(data)
    elif way == "in an archive":
        given = tmp_path / "file.npz"
        with zipfile.ZipFile(given, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("w.npy", data)
    tracemalloc.start()
    with (
        pytest.raises(ValueError, match=f"load: (.|\n)*({words})") as caught,
        snp.load(given) as found,
    ):
        found["w"]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10 << 20
    if way != "open":
        assert str(path) in str(caught.value)


def test_every_truncation_and_bit_of_an_archive(tmp_path):
    path = tmp_path / "file.npz"
    for save in (snp.savez, snp.savez_compressed):
        save(path, w=snp.arange(40.0), b=snp.ones(3))
        whole = path.read_bytes()
        places = range(0, len(whole), 3)
        damaged = [whole[:n] for n in places]
        for place in places:
            flipped = bytearray(whole)
            flipped[place] ^= 1 << (place % 8)
            damaged.append(bytes(flipped))
        refused = 0
        for data in damaged:
            path.write_bytes(data)
            try:
                with snp.load(path) as arrays:
                    [arrays[name] for name in arrays]
            except (ValueError, TypeError, EOFError) as error:
                assert "load: " in str(error)
                refused += 1
        assert refused > len(damaged) / 2


def test_archives_that_claim_more_than_they_can_hold(tmp_path):
    """A size in the directory that no compression comes to."""
    path = tmp_path / "file.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", npy(said((1 << 29,)), bytes(100)))
    data = path.read_bytes()
    directory = data.rindex(b"PK\x01\x02")
    path.write_bytes(data[: directory + 24] + b"\xfe\xff\xff\xff" + data[directory + 28 :])
    with snp.load(path) as arrays, pytest.raises(ValueError, match=r"truncated: .* takes 21474"):
        arrays["w"]


def test_what_an_archive_has_not(tmp_path):
    path = tmp_path / "file.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")
    with snp.load(path) as arrays:
        with pytest.raises(ValueError, match=r"load: readme.txt in .*: expected numbers in"):
            arrays["readme.txt"]
        with pytest.raises(KeyError, match=r"file\.npz has no array 'w'"):
            arrays["w"]


def test_an_empty_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EOFError, match=r"load: .*file is empty"):
        snp.load(tmp_path / "file")


def test_several_arrays_in_one_open_file():
    file = io.BytesIO()
    for n in range(3):
        snp.save(file, snp.full(n, n))
    file.seek(0)
    assert [snp.load(file).tolist() for _ in range(3)] == [[], [1], [2, 2]]


def test_a_file_is_closed_with_its_arrays(tmp_path):
    path = tmp_path / "file.npz"
    snp.savez(path, snp.ones(2))
    arrays = snp.load(path)
    assert arrays["arr_0"].tolist() == [1, 1]
    del arrays  # a warning would be an error
    snp.save(tmp_path / "x", snp.ones(2))
    assert snp.load(tmp_path / "x.npy").tolist() == [1, 1]


def test_what_is_refused():
    objects = io.BytesIO()
    np.save(objects, np.array([{}]), allow_pickle=True)
    words = io.BytesIO()
    np.save(words, np.array(["a"]))
    for file in (objects, words):
        file.seek(0)
    cases = [
        (lambda: snp.load(objects), ValueError, "pickled objects, which are not read"),
        (lambda: snp.load(io.BytesIO(pickle.dumps([1]))), ValueError, "which are not read"),
        (lambda: snp.load(words, allow_pickle=True), ValueError, "allow_pickle=True is refused"),
        (lambda: snp.load(words), TypeError, "which are not numbers"),
        (lambda: snp.save(words, snp.ones(2), True), ValueError, "allow_pickle=True is refused"),
        (lambda: snp.savez(words, snp.ones(2), arr_0=1), ValueError, "arr_0 would name two"),
        (lambda: there_and_back(snp.ones(2, snp.int4)), TypeError, "no name for int4"),
        (lambda: there_and_back(snp.ones(2, snp.float8_e5m2)), TypeError, "no name for float8"),
        (
            lambda: st.jit(lambda x: snp.save(words, x))(snp.ones(2)),
            st.errors.TracedValueError,
            "a file holds values, but arr",
        ),
        (lambda: snp.fromstring("1", sep=""), ValueError, "sep must be the text between"),
        (lambda: snp.fromiter(["a"], "U1"), TypeError, "expected a dtype of numbers"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
