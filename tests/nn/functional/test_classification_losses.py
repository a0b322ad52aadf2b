"""Losses of classes and of alignments: PyTorch's values and slopes, extremes, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "cross_entropy",
        {"input": (3, 4), "target": [0, 3, 1]},
        {"reduction": "none"},
        [(3,), 1.53383, -1.08249],
    ),
    (
        "cross_entropy",
        {"input": (3, 4), "target": [0, -100, 1]},
        {"reduction": "mean"},
        [(), 2.07522, -0.11078],
    ),
    ("cross_entropy", {"input": (4,), "target": 2}, {"reduction": "sum"}, [(), 1.24204, 0.62684]),
    (
        "cross_entropy",
        {"input": (2, 3, 2, 2), "target": [[[0, 2], [1, 1]], [[2, 2], [0, 1]]]},
        {"reduction": "mean", "ignore_index": 2},
        [(), 1.03286, -0.76525],
    ),
    (
        "cross_entropy",
        {"input": (2, 3, 2), "target": [[0, 2], [1, 1]]},
        {"reduction": "mean", "label_smoothing": 0.3},
        [(), 1.62222, 0.14819],
    ),
    (
        "cross_entropy",
        {"input": (2, 3, 2), "target": [[0, 2], [1, 1]]},
        {"reduction": "none", "ignore_index": 1, "label_smoothing": 0.3},
        [(2, 2), 1.85242, -0.62338],
    ),
    (
        "cross_entropy",
        {"input": (3, 4), "target": [0, 3, 1], "weight": [0.5, 2.0, 1.0, 0.1]},
        {"reduction": "none", "label_smoothing": 0.0},
        [(3,), -1.03561, -0.87287],
    ),
    (
        "cross_entropy",
        {"input": (3, 4), "target": [0, 3, 1], "weight": [0.5, 2.0, 1.0, 0.1]},
        {"reduction": "mean", "label_smoothing": 0.2},
        [(), 2.10456, 0.26796],
    ),
    (
        "cross_entropy",
        {"input": (3, 4), "target": [0, 3, 1], "weight": [0.5, 2.0, 1.0, 0.1]},
        {"reduction": "sum", "label_smoothing": 0.0},
        [(), 5.80746, 0.73029],
    ),
    (
        "cross_entropy",
        {"input": (2, 3), "target": [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]},
        {"reduction": "none", "label_smoothing": 0.0},
        [(2,), 1.90674, 0.60128],
    ),
    (
        "cross_entropy",
        {"input": (2, 3), "target": [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]},
        {"reduction": "mean", "label_smoothing": 0.2},
        [(), 1.26985, 0.40809],
    ),
    (
        "cross_entropy",
        {"input": (2, 3), "target": [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], "weight": [0.5, 2.0, 1.0]},
        {},
        [(), 0.94618, 0.286],
    ),
    (
        "nll_loss",
        {"input": (3, 4), "target": [0, 3, 1], "weight": [0.5, 2.0, 1.0, 0.1]},
        {},
        [(), 0.57387, 0.47957],
    ),
    (
        "nll_loss",
        {"input": (2, 3, 2), "target": [[0, 2], [1, 1]]},
        {"reduction": "none", "ignore_index": 1},
        [(2, 2), -0.11623, -1.15326],
    ),
    (
        "binary_cross_entropy_with_logits",
        {"input": (2, 3), "target": [[0.0, 1.0, 0.5], [1.0, 0.0, 1.0]]},
        {},
        [(), 0.62912, 0.10655],
    ),
    (
        "binary_cross_entropy_with_logits",
        {
            "input": (2, 3),
            "target": [[0.0, 1.0, 0.5], [1.0, 0.0, 1.0]],
            "weight": [1.0, 2.0, 0.5],
            "pos_weight": [3.0, 1.0, 0.2],
        },
        {"reduction": "sum"},
        [(), 5.64504, 1.72565],
    ),
    (
        "kl_div",
        {"input": (2, 3), "target": [[0.0, 0.5, 0.5], [0.2, 0.7, 0.1]]},
        {"reduction": "none"},
        [(2, 3), -0.32603, -0.73569],
    ),
    (
        "kl_div",
        {"input": (2, 3), "target": [[0.0, 0.5, 0.5], [0.2, 0.7, 0.1]]},
        {"reduction": "mean"},
        [(), -0.25001, 0.09418],
    ),
    (
        "kl_div",
        {"input": (2, 3), "target": [[0.0, 0.5, 0.5], [0.2, 0.7, 0.1]]},
        {"reduction": "batchmean"},
        [(), -0.75002, 0.28255],
    ),
    (
        "kl_div",
        {"input": (2, 3), "target": (2, 3)},
        {"log_target": True, "reduction": "sum"},
        [(), 3.35044, -2.9439, 5.05559],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


LOGITS = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]], np.float32)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_cross_entropy_by_its_definition(wrap):
    rng = np.random.default_rng(0)
    for x in (rng.normal(size=(2, 3)).astype("f"), LOGITS):
        t = np.array([1, 2])
        want = -special.log_softmax(x.astype(float), 1)[[0, 1], t]
        loss, slope = wrap(st.value_and_grad(lambda x, t: F.cross_entropy(x, t, reduction="sum")))(
            snp.array(x), snp.array(t)
        )
        np.testing.assert_allclose(loss, want.sum(), rtol=1e-6)
        np.testing.assert_allclose(slope, special.softmax(x, 1) - np.eye(3)[t], atol=1e-6)


def test_a_class_that_cannot_be_costs_nothing_elsewhere():
    x = snp.array([[1.0, -np.inf, 0.0]])
    loss, slope = st.value_and_grad(F.cross_entropy)(x, snp.array([0]))
    np.testing.assert_allclose(loss, np.log1p(np.exp(-1)), rtol=1e-6)
    assert np.isfinite(slope).all() and slope[0, 1] == 0
    assert F.cross_entropy(x, snp.array([1])) == np.inf


def test_all_ignored_is_not_a_number():
    x, t = snp.ones((2, 3)), snp.full((2,), -100)
    assert np.isnan(F.cross_entropy(x, t).item())
    assert F.cross_entropy(x, t, reduction="sum") == 0
    assert st.grad(lambda x: F.cross_entropy(x, t, reduction="sum"))(x).tolist() == [[0] * 3] * 2


def test_class_out_of_range():
    x, t = snp.zeros((2, 3)), snp.array([0, 3])
    with pytest.raises(
        IndexError, match=r"cross_entropy: target has class 3 at \[1\], but the inp"
    ):
        F.cross_entropy(x, t)
    with pytest.raises(IndexError, match=r"nll_loss: target has class -1 at \[0\]"):
        F.nll_loss(x, snp.array([-1, 0]))
    loss = st.jit(lambda x, t: F.cross_entropy(x, t, reduction="none"))(x, t)
    assert np.isfinite(loss[0]) and np.isnan(loss[1])


def test_classes_are_not_gathered():
    text = st.jit(st.grad(F.cross_entropy)).lower(snp.ones((4, 5)), snp.zeros(4, int)).as_text()
    assert "gather" not in text and "scatter" not in text


def test_each_member_its_loss():
    x, t = snp.sin(snp.arange(24.0)).reshape(3, 2, 4), snp.array([1, 3])
    got = st.jit(st.vmap(st.grad(F.cross_entropy), in_axes=(0, None)))(x, t)
    for i in range(3):
        np.testing.assert_allclose(got[i], st.grad(F.cross_entropy)(x[i], t), atol=1e-7)


def test_second_derivative():
    x, t = snp.array([[0.3, -0.4, 0.1]]), snp.array([2])
    p = special.softmax(np.asarray(x, np.float64))[0]
    hessian = st.hessian(F.cross_entropy)(x, t)[0, :, 0]
    np.testing.assert_allclose(hessian, np.diag(p) - np.outer(p, p), atol=1e-6)


def test_probabilities_at_both_ends():
    # From PyTorch 2.13.0: the loss is at most 100 and the slope finite.
    x, t = snp.array([0.0, 0.0, 1.0, 1.0]), snp.array([0.0, 1.0, 0.0, 1.0])
    for wrap in (lambda f: f, st.jit):
        loss = wrap(lambda x: F.binary_cross_entropy(x, t, reduction="none"))(x)
        assert loss.tolist() == [0, 100, 100, 0]
        slope = wrap(st.grad(lambda x: F.binary_cross_entropy(x, t, reduction="sum")))(x)
        np.testing.assert_allclose(slope, [0, -1e12, 1e12, 0], rtol=1e-6)
    x = np.array([0.1, 0.5, 0.9, 0.3])
    want = -special.xlogy(t, x) - special.xlog1py(1 - np.asarray(t), -x)
    got = F.binary_cross_entropy(snp.array(x), t, snp.array(2.0), reduction="none")
    np.testing.assert_allclose(got, 2 * want, rtol=1e-5)
    by_target = st.grad(lambda t: F.binary_cross_entropy(snp.array([0.25]), t))(snp.array([0.5]))
    np.testing.assert_allclose(by_target, np.log(0.75 / 0.25), rtol=1e-5)
    with pytest.raises(ValueError, match="input must be probabilities from 0 to 1; for logits use"):
        F.binary_cross_entropy(snp.array(x + 1), t)
    outside = st.jit(lambda x: F.binary_cross_entropy(x, t[:1]))(snp.array([1.5]))
    assert np.isnan(outside.item())


def test_logits_far_out():
    x = snp.array([-1e4, -100.0, 0.0, 100.0, 1e4])
    for t, want in ((0.0, [0, 0, np.log(2), 100, 1e4]), (1.0, [1e4, 100, np.log(2), 0, 0])):
        target = snp.full((5,), t)
        f = lambda x, t=target: F.binary_cross_entropy_with_logits(x, t, reduction="none")
        np.testing.assert_allclose(f(x), want, rtol=1e-6, atol=1e-30)
        slope = st.vjp(f, x)[1](snp.ones(5))[0]
        np.testing.assert_allclose(slope, special.expit(np.asarray(x)) - t, atol=1e-6)


def test_divergence():
    p, q = np.array([[0.2, 0.8], [0.0, 1.0]], "f"), np.array([[0.5, 0.5], [0.3, 0.7]], "f")
    got = F.kl_div(snp.log(snp.array(q)), snp.array(p), reduction="batchmean")
    np.testing.assert_allclose(got, special.rel_entr(p, q).sum() / 2, rtol=1e-5)
    assert np.isfinite(st.grad(lambda t: F.kl_div(snp.log(snp.array(q)), t))(snp.array(p))).all()


def test_narrow_types():
    x, t = snp.ones((512, 4), snp.bfloat16), snp.zeros(512, int)
    loss = F.cross_entropy(x, t)
    assert loss.dtype == snp.bfloat16
    np.testing.assert_allclose(float(loss), np.log(4), rtol=1e-2)


def test_messages():
    x, t = snp.ones((2, 3)), snp.zeros(2, int)
    with pytest.raises(
        ValueError, match=r"cross_entropy: expected target as integer classes of sh"
    ):
        F.cross_entropy(x, snp.zeros(3, int))
    with pytest.raises(
        ValueError, match=r"integer classes of shape \(2,\) for input float32\[2,3\]"
    ):
        F.cross_entropy(x, snp.zeros(2))
    with pytest.raises(ValueError, match=r"integer classes .* got int32\[2,3\]"):
        F.cross_entropy(x, snp.zeros((2, 3), int))
    with pytest.raises(ValueError, match="label_smoothing must be from 0 to 1, got 2"):
        F.cross_entropy(x, t, label_smoothing=2)
    with pytest.raises(ValueError, match="label_smoothing must be from 0 to 1"):
        F.cross_entropy(x, t, label_smoothing=snp.array(-0.5))
    with pytest.raises(ValueError, match="weight to have one element for each of 3 classes, got"):
        F.cross_entropy(x, t, weight=snp.ones(2))
    with pytest.raises(ValueError, match="ignore_index is for targets that are classes"):
        F.cross_entropy(x, x / 3, ignore_index=0)
    with pytest.raises(ValueError, match="input must have an axis of classes"):
        F.nll_loss(snp.array(1.0), snp.array(0))
    with pytest.raises(ValueError, match="kl_div: reduction must be"):
        F.kl_div(x, x, reduction="median")
    with pytest.raises(ValueError, match="'batchmean' needs a batch axis"):
        F.kl_div(snp.array(1.0), snp.array(1.0), reduction="batchmean")
    with pytest.raises(ValueError, match="logits: expected input and target of one shape"):
        F.binary_cross_entropy_with_logits(x, t)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"weight": np.ones(3)}], ids=str)
def test_logits_of_ignored_targets_have_no_part_in_derivatives(bad, options):
    x = np.array([[0.0, 1.0, 3.0]] * 2, np.float32)
    target = np.array([1, -100])
    other = x.copy()
    other[1] = bad
    loss = lambda x, target: F.cross_entropy(x, target, **options)
    for f in (st.grad(loss), st.jit(st.grad(loss))):
        np.testing.assert_array_equal(f(other, target), f(x, target))
        assert not np.asarray(f(other, target))[1].any()


def test_the_forward_pass_compares_no_classes():
    x, t = snp.ones((4, 5)), snp.zeros(4, int)
    text = st.jit(F.nll_loss).lower(x, t).as_text()
    assert "gather" in text and "tensor<4x5xi1>" not in text


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
def test_classes_of_narrow_types_beyond_their_range(dtype):
    x, t = np.sin(np.arange(900.0, dtype="f")).reshape(3, 300), np.array([0, 44, 127])
    for loss in (F.nll_loss, F.cross_entropy):
        for f in (loss, st.grad(loss)):
            want = f(x, t)
            np.testing.assert_allclose(f(x, t.astype(dtype)), want, rtol=1e-6)
            np.testing.assert_allclose(st.jit(f)(x, t.astype(dtype)), want, rtol=1e-6)


def test_no_targets():
    x, t = snp.ones((0, 3)), snp.zeros((0,), int)
    for loss in (F.nll_loss, F.cross_entropy):
        assert loss(x, t, reduction="sum") == 0
        assert st.grad(lambda x, loss=loss: loss(x, t, reduction="sum"))(x).shape == (0, 3)


def test_no_classes():
    x, t = snp.ones((2, 0)), snp.full((2,), -100)
    for loss in (F.nll_loss, F.cross_entropy):
        assert loss(x, t, snp.ones(0), reduction="none").tolist() == [0, 0]


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}], ids=str)
def test_second_derivatives_are_finite_beside_ignored_logits(options):
    x = snp.array([[0.0, 1.0, 3.0], [np.nan, np.inf, 0.0]])
    t = snp.array([1, -100])
    loss = lambda x: F.cross_entropy(x, t, reduction="sum", **options)
    hessian = np.asarray(st.jit(st.hessian(loss))(x))
    assert np.isfinite(hessian).all() and not hessian[1].any() and not hessian[:, :, 1].any()
    p = special.softmax(np.asarray(x[0], np.float64))
    np.testing.assert_allclose(hessian[0, :, 0], np.diag(p) - np.outer(p, p), atol=1e-6)
    tangent = st.jvp(loss, (x,), (snp.ones_like(x).at[1].set(np.nan),))[1]
    np.testing.assert_allclose(tangent, 0, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_losses_and_derivatives_by_all_arguments_are_those_of_the_definition(smoothing):
    x = np.sin(np.arange(24.0)).reshape(2, 4, 3).astype("f")
    t, w = np.array([[0, 3, 1], [2, 2, 0]]), np.array([0.5, 2.0, 1.0, 0.1], "f")

    def plain(x, w):
        each = w[:, None] * st.nn.log_softmax(x, 1)
        own = snp.stack([each[i, t[i], np.arange(3)] for i in range(2)])
        loss = (1 - smoothing) * own + smoothing / 4 * snp.sum(each, 1)
        return -snp.sum(loss) / snp.sum(w[t])

    loss = lambda x, w: F.cross_entropy(x, t, w, label_smoothing=smoothing)
    for transform in (lambda f: f, lambda f: st.grad(f, (0, 1)), st.jacfwd):
        got, want = (st.jit(transform(f))(x, w) for f in (loss, plain))
        for g, v in zip(st.tree.leaves(got), st.tree.leaves(want)):
            np.testing.assert_allclose(g, v, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("probabilities", [False, True])
def test_label_smoothing_of_each_member(probabilities):
    x = snp.array([[0.5, -1.0, 2.0], [0.1, 0.2, 0.3]])
    t = snp.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]) if probabilities else snp.array([2, 0])
    smoothing = snp.array([0.0, 0.1, 1.0])
    loss = lambda s: F.cross_entropy(x, t, label_smoothing=s)
    got = st.jit(st.vmap(loss))(smoothing)
    np.testing.assert_allclose(got, [loss(float(s)) for s in smoothing], rtol=1e-6)
    slope = st.grad(loss)(0.1)
    np.testing.assert_allclose(slope, loss(1.0) - loss(0.0), rtol=1e-5)


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


CTC_LOGITS = np.sin(1.3 * np.arange(5 * 4 * 3)).reshape(5, 4, 3).astype("f") * 2
TARGETS = np.array([[1, 2, 1], [2, 2, 0], [1, -1, 0], [2, 1, 2]])
OF_INPUT, OF_TARGET = np.array([5, 4, 3, 5]), np.array([3, 2, 1, 0])


def log_softmax(x):
    return np.asarray(F.log_softmax(snp.array(x), -1), np.float64)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_all_alignments(wrap):
    logs = log_softmax(CTC_LOGITS)
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
    logs = log_softmax(CTC_LOGITS)[:, 0]
    got = F.ctc_loss(snp.array(logs, "f"), snp.array([0, 1]), 5, 2, blank=2, reduction="none")
    assert got.shape == ()
    np.testing.assert_allclose(got, counted(logs, [0, 1], 2), rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_derivative_is_the_limit_of_differences(wrap):
    def loss(x):
        return F.ctc_loss(F.log_softmax(x, -1), snp.array(TARGETS), OF_INPUT, OF_TARGET)

    x = snp.array(CTC_LOGITS)
    slope = np.asarray(wrap(st.grad(loss))(x))
    direction = np.cos(np.arange(x.size)).reshape(x.shape).astype("f")
    h = 1e-2
    numeric = (loss(x + h * direction) - loss(x - h * direction)) / (2 * h)
    np.testing.assert_allclose((slope * direction).sum(), numeric, rtol=2e-3)
    assert (slope[3:, 2] == 0).all()  # steps beyond the input's length


def test_impossible_targets():
    logs = snp.array(log_softmax(CTC_LOGITS), "f")
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


def test_messages_of_ctc():
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
