from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp

A = np.arange(6, dtype=np.float32).reshape(2, 3)
V, W = np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0, 5.0, 6.0], np.float32)


@pytest.mark.parametrize(
    ("name", "at", "axis"),
    [("split", 3, 1), ("split", [1, 2], 1), ("split", (1,), 0), ("array_split", 2, 1),
     ("array_split", 5, 1), ("split", [2, 1, -1], 1)],
)  # fmt: skip
def test_split(agree, name, at, axis):
    agree(name, A, at, axis)


def test_split_by_name(agree):
    agree("hsplit", A, 3)
    agree("vsplit", A, 2)
    agree("hsplit", V, 3)
    agree("dsplit", A.reshape(1, 2, 3), 3)
    assert [p.tolist() for p in snp.unstack(snp.array(A))] == A.tolist()
    assert snp.unstack(snp.array(A), axis=-1)[1].tolist() == A[:, 1].tolist()
    with pytest.raises(ValueError, match="equal parts"):
        snp.split(snp.array(A), 2, axis=1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.hsplit(snp.ones((3, 3, 3)), 2),
            ValueError,
            r"hsplit: axis 1 of float32.* does not divide into 2 equal parts",
        ),
        (
            lambda: snp.vsplit(snp.ones((3, 3, 3)), 2),
            ValueError,
            r"vsplit: axis 0 of float32.* does not divide into 2 equal parts",
        ),
        (
            lambda: snp.dsplit(snp.ones((3, 3, 3)), 2),
            ValueError,
            r"dsplit: axis 2 of float32.* does not divide into 2 equal parts",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
