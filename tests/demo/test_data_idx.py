"""IDX files: what is read, and what is said of files that are not what they claim."""

import gzip

import numpy as np
import pytest

from stretto.demo.data import read_idx
from stretto.demo.options import DemoError

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def header(*shape, kind=0x08):
    return bytes([0, 0, kind, len(shape)]) + np.array(shape, ">u4").tobytes()


GOOD = header(2, 3, 4) + IMAGES.tobytes()


def written(tmp_path, content, name="file-idx3-ubyte"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def test_plain_and_compressed(tmp_path):
    plain = written(tmp_path, GOOD)
    compressed = written(tmp_path, gzip.compress(GOOD), "file.gz")
    for path in plain, compressed:
        array = read_idx(path, 3)
        assert array.dtype == np.uint8
        np.testing.assert_array_equal(array, IMAGES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated: 0 bytes"),
        (b"\0\0", "truncated: 2 bytes"),
        (GOOD[:10], "truncated: the header ends after 10 bytes"),
        (GOOD[:-1], r"truncated: the header says 2×3×4 = 24 bytes, got 23 bytes"),
        (GOOD + b"\0", "too long: the header says 2×3×4 = 24 bytes, got more"),
        (header(24) + bytes(24), "magic number 0x00000803, got 0x00000801"),
        (header(2, 3, 4, kind=0x0D) + bytes(96), "magic number 0x00000803, got 0x00000d03"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "magic number 0x00000803, got 0x89504e47"),
        (header(0, 3, 4), "got 0×3×4"),
        (header(2**32 - 1, 2**32 - 1, 2**32 - 1), "expected 1 to 2147483648 bytes"),
    ],
)
def test_not_what_it_claims(tmp_path, content, message):
    for name, data in ("plain", content), ("compressed.gz", gzip.compress(content)):
        path = written(tmp_path, data, name)
        with pytest.raises(DemoError, match=message) as caught:
            read_idx(path, 3)
        assert str(caught.value).startswith(str(path))


def test_damaged_compression(tmp_path):
    whole = gzip.compress(GOOD)
    flipped = bytearray(whole)
    flipped[-5] ^= 0xFF  # in the checksum
    for content, message in [
        (whole[:-9], "truncated: the gzip stream ends early"),
        (GOOD, "damaged gzip file: Not a gzipped file"),
        (bytes(flipped), "damaged gzip file: CRC check failed"),
        (whole[:10] + b"\xff" * 20, "damaged gzip file"),
    ]:
        with pytest.raises(DemoError, match=message):
            read_idx(written(tmp_path, content, "file.gz"), 3)


def test_a_small_file_that_unpacks_to_much_is_not_unpacked_whole(tmp_path):
    path = written(tmp_path, gzip.compress(GOOD + bytes(2**24)), "file.gz")
    with pytest.raises(DemoError, match="too long"):
        read_idx(path, 3)


def test_missing_or_no_file(tmp_path):
    with pytest.raises(DemoError, match=r"absent\.gz: no such file"):
        read_idx(tmp_path / "absent.gz", 3)
    with pytest.raises(DemoError, match="cannot be read: Is a directory"):
        read_idx(tmp_path, 3)
