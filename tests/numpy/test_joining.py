from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = A + 10
V, W = np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0, 5.0, 6.0], np.float32)


def joined(name, arrays, **settings):
    """Eager, jitted and NumPy's results, which are one."""
    ours, theirs = getattr(snp, name), getattr(np, name)
    want = theirs(arrays, **settings)
    values = [snp.array(a) for a in arrays]
    for got in (ours(values, **settings), st.jit(lambda *v: ours(v, **settings))(*values)):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == np.float32


@pytest.mark.parametrize("arrays", [(A, B), (V, W, V)])
@pytest.mark.parametrize("name", ["concatenate", "stack", "vstack", "hstack", "dstack",
                                  "column_stack"])  # fmt: skip
def test_join(name, arrays):
    joined(name, arrays)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concatenate(axis):
    joined("concatenate", (A, B, A), axis=axis)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_stack(axis):
    joined("stack", (A, B), axis=axis)


def test_join_promotes():
    got = snp.concatenate([snp.array([1, 2]), snp.array([1.5]), snp.array([True])])
    assert got.tolist() == [1, 2, 1.5, 1]
    assert got.dtype == snp.float32
    assert snp.stack([1, 2.0]).tolist() == [1, 2]
    assert snp.concatenate([snp.ones(1)], dtype=snp.bfloat16).dtype == snp.bfloat16
    assert snp.concat([snp.ones(1)] * 2).shape == (2,)
    assert snp.concatenate(snp.ones((2, 3))).shape == (6,)
    assert snp.stack(snp.ones((2, 3)), axis=1).shape == (3, 2)


def test_join_errors():
    with pytest.raises(ValueError, match="at least one"):
        snp.concatenate([])
    with pytest.raises(ValueError, match="use stack"):
        snp.concatenate([snp.array(1.0)])
    with pytest.raises(ValueError, match=r"float32\[2,3\]"):
        snp.stack([snp.array(A), snp.array(V)])
    with pytest.raises((ValueError, TypeError), match="concatenate"):
        snp.concatenate([snp.array(A), snp.array(V)])
    with pytest.raises(TypeError, match="array"):
        snp.concatenate([[1, 2], [3]])


def test_blocks_of_different_depths():
    for bad, words in (([1, [2]], "some 0 deep, some 1"), ([[1], []], "got an empty list")):
        with pytest.raises(ValueError, match=f"block: all blocks .*{words}"):
            snp.block(bad)


def test_append_block(agree):
    agree("append", A, B, axis=0)
    agree("append", A, 7)
    got = snp.block([[snp.ones((2, 2)), snp.zeros((2, 1))], [snp.zeros((1, 2)), 5]])
    np.testing.assert_array_equal(
        got, np.block([[np.ones((2, 2)), np.zeros((2, 1))], [np.zeros((1, 2)), np.full((1, 1), 5)]])
    )


def test_derivatives():
    def f(x, y):
        return (snp.concatenate([x, y]) * snp.arange(4.0)).sum()

    gx, gy = st.grad(f, argnums=(0, 1))(snp.ones(2), snp.ones(2))
    assert (gx.tolist(), gy.tolist()) == ([0, 1], [2, 3])
    assert st.grad(lambda x: snp.tile(x, 3).sum())(snp.ones(2)).tolist() == [3, 3]
    assert st.grad(lambda x: snp.repeat(x, np.array([2, 1])).sum())(snp.ones(2)).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.concatenate([snp.ones((2, 3)), snp.ones((3, 4))]),
            ValueError,
            r"concatenate: arrays must have one shape except along axis \d; got float32\[",
        ),
        (
            lambda: snp.concat([snp.ones((2, 3)), snp.ones((3, 4))]),
            ValueError,
            r"concat: arrays must have one shape except along axis \d; got float32\[",
        ),
        (
            lambda: snp.vstack([snp.ones((2, 3)), snp.ones((3, 4))]),
            ValueError,
            r"vstack: arrays must have one shape except along axis \d; got float32\[",
        ),
        (
            lambda: snp.hstack([snp.ones((2, 3)), snp.ones((3, 4))]),
            ValueError,
            r"hstack: arrays must have one shape except along axis \d; got float32\[",
        ),
        (
            lambda: snp.column_stack([snp.ones((2, 3)), snp.ones((3, 4))]),
            ValueError,
            r"column_stack: arrays must have one shape except along axis \d; got float32\[",
        ),
        (
            lambda: snp.dstack([snp.ones(3), snp.ones(2)]),
            ValueError,
            r"dstack: arrays must have one shape",
        ),
        (
            lambda: snp.append(snp.ones((2, 3)), snp.ones(3), 1),
            ValueError,
            r"append: arrays must have one shape except along axis 1",
        ),
        (
            lambda: snp.block([snp.ones((1, 3)), snp.ones((2, 3))]),
            ValueError,
            r"block: arrays must have one shape",
        ),
        (lambda: snp.concat([snp.array(1.0)]), ValueError, r"concat: arrays of rank 0"),
        (lambda: snp.stack(1), TypeError, r"stack: expected a sequence of arrays, got 1"),
        (
            lambda: st.jit(lambda x: snp.vstack([x, snp.ones(2)]))(snp.ones(3)),
            ValueError,
            r"vstack: arrays must have one shape",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
