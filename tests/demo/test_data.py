"""Data sets: splits, and directories whose files do not fit together."""

import gzip

import numpy as np
import pytest

from stretto.demo import data
from stretto.demo.options import DemoError


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))


def write_directory(path, train=24, test=5, shape=(3, 4)):
    for prefix, count in ("train", train), ("t10k", test):
        images = np.arange(count)[:, None, None] + np.zeros(shape)
        write_idx(path / f"{prefix}-images-idx3-ubyte.gz", images)
        write_idx(path / f"{prefix}-labels-idx1-ubyte.gz", np.arange(count) % 10)


def read(path):
    return data.from_idx(path, "test", tuple("0123456789"))


def test_splits_are_disjoint_and_whole(tmp_path):
    write_directory(tmp_path)
    found = read(tmp_path)
    assert found.image_shape == (3, 4)
    assert [len(part.labels) for part in (found.train, found.validation, found.test)] == [22, 2, 5]
    both = np.concatenate([found.train.images[:, 0], found.validation.images[:, 0]])
    np.testing.assert_array_equal(np.sort(both), np.arange(24))
    for part in found.train, found.validation, found.test:
        np.testing.assert_array_equal(part.images[:, 0] % 10, part.labels)
        assert part.images.dtype == np.uint8 and part.labels.dtype == np.int32


def test_uncompressed_files_are_read_too(tmp_path):
    write_directory(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert len(read(tmp_path).test.labels) == 5


def test_files_at_odds(tmp_path):
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    write_directory(tmp_path)
    write_idx(labels, np.arange(23) % 10)
    with pytest.raises(DemoError, match="23 labels for 24 images"):
        read(tmp_path)
    write_idx(labels, np.arange(24))
    with pytest.raises(DemoError, match="expected labels from 0 to 9, got 23"):
        read(tmp_path)
    write_directory(tmp_path)
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", np.zeros((5, 4, 4)))
    with pytest.raises(DemoError, match=r"of shape \(3, 4\), test images \(4, 4\)"):
        read(tmp_path)
    write_directory(tmp_path, train=1)
    with pytest.raises(DemoError, match="at least 2 training images"):
        read(tmp_path)


def test_missing(tmp_path):
    with pytest.raises(DemoError, match="nowhere: no such directory"):
        read(tmp_path / "nowhere")
    with pytest.raises(DemoError, match=r"train-images-idx3-ubyte\.gz: no such file"):
        read(tmp_path)


def test_digits():
    pytest.importorskip("sklearn")
    found = data.digits()
    assert [len(part.labels) for part in (found.train, found.validation, found.test)] == [
        800,
        200,
        797,
    ]
    assert found.train.images.max() == 255
    assert set(found.test.labels.tolist()) == set(range(10))


def test_which_data(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "digits", lambda: "digits")
    monkeypatch.setattr(data, "DEFAULT_DATA", tmp_path / "absent")
    assert data.load(None, use_digits=False) == "digits"
    write_directory(tmp_path)
    assert data.load(tmp_path, use_digits=False).name == f"images in {tmp_path}"
    monkeypatch.setattr(data, "DEFAULT_DATA", tmp_path)
    assert data.load(None, use_digits=False).name == "Fashion-MNIST"
    assert data.load(None, use_digits=True) == "digits"
