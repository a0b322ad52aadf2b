"""Transposition: linear programs run backwards."""

import numpy as np
import pytest

from stretto import make_graph
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.transpose import backward, transpose_program
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import check

W = as_value(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
X = as_value(np.array([0.5, 1.5], np.float32))
CT = as_value(np.array([1.0, -2.0], np.float32))


def program(f, *args):
    return make_graph(f)(*args)


def test_the_transpose_of_a_product():
    p = program(lambda w, x: w @ x, W, X)
    (ct,) = backward(p, (False, True), [W], [CT])
    np.testing.assert_allclose(ct, np.asarray(W).T @ np.asarray(CT))
    (ct,) = backward(p, (True, False), [X], [CT])
    np.testing.assert_allclose(ct, np.outer(CT, X))


def test_cotangents_of_several_uses_add_up():
    p = program(lambda x: x * 2.0 + x + x, X)
    (ct,) = backward(p, (True,), [], [CT])
    np.testing.assert_allclose(ct, np.asarray(CT) * 4)


def test_cotangents_of_several_outputs_add_up():
    p = program(lambda x: (x, x, x * 3.0), X)
    (ct,) = backward(p, (True,), [], [CT, CT, CT])
    np.testing.assert_allclose(ct, np.asarray(CT) * 5)
    (ct,) = backward(p, (True,), [], [CT, None, None])
    assert ct is CT


def test_zeros_stay_symbolic():
    p = program(lambda x, y: (x * 2.0, y * 3.0), X, X)
    first, second = backward(p, (True, True), [], [CT, None])
    assert second is None
    np.testing.assert_allclose(first, np.asarray(CT) * 2)
    assert backward(p, (True, True), [], [None, None]) == [None, None]


def test_an_unused_input_gets_nothing():
    p = program(lambda x, y: x * 2.0, X, X)
    assert backward(p, (True, True), [], [CT])[1] is None


def test_what_does_not_vary_is_run_forwards():
    p = program(lambda w, x: snp.sin(w * 2.0) @ x, W, X)
    (ct,) = backward(p, (False, True), [W], [CT])
    np.testing.assert_allclose(ct, np.sin(2 * np.asarray(W)).T @ np.asarray(CT), rtol=1e-6)


def test_what_is_not_linear_is_refused():
    p = program(snp.sin, X)
    with pytest.raises(
        MissingRuleError, match="sin has no transpose rule: it is not linear in any"
    ):
        backward(p, (True,), [], [CT])


LINEAR = program(lambda w, x, y: (w @ x, snp.sum(y), x * 2.0), W, X, X)


@pytest.mark.parametrize(
    "active, given",
    [
        ((True, True, True), (True, True)),
        ((True, False, False), (True, False)),
        ((False, True, False), (False, True)),
        ((False, False, False), (False, False)),
    ],
)
def test_programs(active, given):
    made, mask = transpose_program(LINEAR, (False, True, True), active)
    check(made)
    assert mask == given
    assert made.in_types == (
        W.type,
        *(t for t, a in zip(LINEAR.out_types, active, strict=True) if a),
    )
    cts = [CT, as_value(np.float32(3)), X]
    got = evaluate(made, [W, *(c for c, a in zip(cts, active, strict=True) if a)])
    want = backward(
        LINEAR,
        (False, True, True),
        [W],
        [c if a else None for c, a in zip(cts, active, strict=True)],
    )
    for g, w in zip(got, [w for w in want if w is not None], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_forced_cotangents_are_zeros():
    made, mask = transpose_program(LINEAR, (False, True, True), (True, False, False), (True, True))
    check(made)
    assert mask == (True, True)
    np.testing.assert_array_equal(evaluate(made, [W, CT])[1], [0, 0])


def test_programs_are_made_once():
    args = LINEAR, (False, True, True), (True, True, True)
    assert transpose_program(*args)[0] is transpose_program(*args)[0]


def test_a_transpose_transposed_is_the_program():
    p = program(lambda x: snp.stack([x, x * 2.0, x * 3.0]).sum(0)[::-1], X)
    back, _ = transpose_program(p, (True,), (True,))
    again, _ = transpose_program(back, (True,), (True,))
    np.testing.assert_allclose(evaluate(again, [X])[0], evaluate(p, [X])[0], rtol=1e-6)
