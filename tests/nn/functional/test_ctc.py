"""``ctc_loss``: all alignments counted one by one, lengths, impossible targets, messages."""

import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F


def collapsed(path, blank):
    return [c for c, _ in itertools.groupby(path) if c != blank]


def counted(logs, target, blank=0):
    """-log of the sum over all paths that collapse to the target."""
    steps, classes = logs.shape
    total = sum(
        np.exp(sum(logs[i, c] for i, c in enumerate(path)))
        for path in itertools.product(range(classes), repeat=steps)
        if collapsed(path, blank) == list(target)
    )
    return -np.log(total) if total else np.inf


LOGITS = np.sin(1.3 * np.arange(5 * 4 * 3)).reshape(5, 4, 3).astype("f") * 2
TARGETS = np.array([[1, 2, 1], [2, 2, 0], [1, -1, 0], [2, 1, 2]])
OF_INPUT, OF_TARGET = np.array([5, 4, 3, 5]), np.array([3, 2, 1, 0])


def log_softmax(x):
    return np.asarray(F.log_softmax(snp.array(x), -1), np.float64)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_all_alignments(wrap):
    logs = log_softmax(LOGITS)
    want = [counted(logs[: OF_INPUT[i], i], TARGETS[i, : OF_TARGET[i]]) for i in range(4)]
    loss = wrap(lambda *a: F.ctc_loss(*a, reduction="none"))
    arguments = (snp.array(TARGETS), snp.array(OF_INPUT), snp.array(OF_TARGET))
    np.testing.assert_allclose(loss(snp.array(logs, "f"), *arguments), want, rtol=1e-5)
    mean = F.ctc_loss(snp.array(logs, "f"), *arguments)
    np.testing.assert_allclose(mean, np.mean(want / np.maximum(OF_TARGET, 1)), rtol=1e-5)
    flat = snp.array([1, 2, 1, 2, 2, 1])
    other = F.ctc_loss(snp.array(logs, "f"), flat, OF_INPUT.tolist(), OF_TARGET.tolist())
    np.testing.assert_allclose(other, mean, rtol=1e-6)


def test_another_blank_and_no_batch():
    logs = log_softmax(LOGITS)[:, 0]
    got = F.ctc_loss(snp.array(logs, "f"), snp.array([0, 1]), 5, 2, blank=2, reduction="none")
    assert got.shape == ()
    np.testing.assert_allclose(got, counted(logs, [0, 1], 2), rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_derivative_is_the_limit_of_differences(wrap):
    def loss(x):
        return F.ctc_loss(F.log_softmax(x, -1), snp.array(TARGETS), OF_INPUT, OF_TARGET)

    x = snp.array(LOGITS)
    slope = np.asarray(wrap(st.grad(loss))(x))
    direction = np.cos(np.arange(x.size)).reshape(x.shape).astype("f")
    h = 1e-2
    numeric = (loss(x + h * direction) - loss(x - h * direction)) / (2 * h)
    np.testing.assert_allclose((slope * direction).sum(), numeric, rtol=2e-3)
    assert (slope[3:, 2] == 0).all()  # steps beyond the input's length


def test_impossible_targets():
    logs = snp.array(log_softmax(LOGITS), "f")
    short = [1, 4, 3, 5]  # one step cannot hold three labels
    assert np.isinf(F.ctc_loss(logs, snp.array(TARGETS), short, OF_TARGET, reduction="none")[0])

    def loss(x):
        arguments = (snp.array(TARGETS), short, OF_TARGET)
        return F.ctc_loss(x, *arguments, zero_infinity=True, reduction="none")

    out, back = st.vjp(loss, logs)
    assert out[0] == 0 and (out[1:] > 0).all()
    slope = np.asarray(back(snp.ones(4))[0])
    assert np.isfinite(slope).all() and (slope[:, 0] == 0).all()


def test_many_steps_do_not_underflow():
    logs = snp.full((600, 1, 3), np.log(1 / 3))
    loss = F.ctc_loss(logs, snp.array([[1, 2]]), [600], [2], reduction="sum")
    assert 500 < float(loss) < 660


def test_messages():
    logs, targets = snp.zeros((4, 2, 3)), snp.ones((2, 2), int)
    with pytest.raises(ValueError, match=r"ctc_loss: expected log_probs \(time, batch, classes\)"):
        F.ctc_loss(snp.zeros(3), targets, [4, 4], [2, 2])
    with pytest.raises(ValueError, match="ctc_loss: blank must be a class"):
        F.ctc_loss(logs, targets, [4, 4], [2, 2], blank=3)
    with pytest.raises(ValueError, match="ctc_loss: expected targets as integers"):
        F.ctc_loss(logs, snp.ones((3, 2), int), [4, 4], [2, 2])
    with pytest.raises(ValueError, match="expected input_lengths as 2 integers"):
        F.ctc_loss(logs, targets, [4], [2, 2])
    with pytest.raises(ValueError, match="input_lengths must be from 0 to 4"):
        F.ctc_loss(logs, targets, [4, 5], [2, 2])
    with pytest.raises(ValueError, match="add up to 4, but there are 3 targets"):
        F.ctc_loss(logs, snp.ones(3, int), [4, 4], [2, 2])
    with pytest.raises(st.errors.TracedValueError, match="give targets as rows"):
        st.jit(lambda n: F.ctc_loss(logs, snp.ones(4, int), [4, 4], n))(snp.array([2, 2]))


def test_inputs_and_targets_of_any_length():
    def loss(x, targets):
        logs = F.log_softmax(x, -1)
        return F.ctc_loss(logs, targets, [x.shape[0]], [targets.shape[0]])

    f = st.jit(st.value_and_grad(loss), dynamic_axes=({0: "t"}, {0: "s"}))
    rng = np.random.default_rng(0)
    for steps, count in [(1, 1), (9, 4), (30, 17), (2, 5)]:
        x = rng.normal(size=(steps, 4)).astype(np.float32)
        targets = rng.integers(1, 4, count)
        value, slope = f(x, targets)
        wanted, by_x = st.value_and_grad(loss)(snp.asarray(x), snp.asarray(targets))
        np.testing.assert_allclose(value, wanted, rtol=1e-4)
        np.testing.assert_allclose(slope, by_x, rtol=1e-3, atol=1e-5)
