"""Loops whose conditions bound how many steps they take."""

import pytest

import stretto as st
from stretto._engine.higher_order.steps import most_steps
from stretto._engine.higher_order.while_loop import While


def steps_of(cond, body, *carry):
    graph = st.make_graph(lambda x: st.lax.while_loop(cond, body, (x, *carry)))(1.0)
    (equation,) = [e for e in graph.equations if isinstance(e.primitive, While)]
    loop = equation.primitive
    own = equation.inputs[loop.cond_consts + loop.body_consts :]
    return most_steps(loop.cond, loop.cond_consts, loop.body, loop.body_consts, own)


def halved(s):
    return s[0] / 2, s[1] + 1


@pytest.mark.parametrize(
    ("cond", "body", "first", "wanted"),
    [
        (lambda s: (s[0] > 1) & (s[1] < 100), halved, 0, 101),
        (lambda s: (s[1] <= 100) & (s[0] > 1), halved, 90, 11),
        (lambda s: (s[1] < 100) & (s[0] > 1), lambda s: (s[0], 1 + s[1]), 0, 101),
        (lambda s: s[1] <= 100, lambda s: (s[0], s[1] + 4), 0, 26),
        (lambda s: (s[0] > 1) & (s[1] < 3) & (s[1] < 9), halved, 0, 4),
        (lambda s: s[1] < 3, halved, 7, 1),
        (lambda s: (s[0] > 1) | (s[1] < 100), halved, 0, None),
        (lambda s: s[1] > 3, halved, 7, None),
        (lambda s: s[1] < 100, lambda s: (s[0], s[1] - 1), 0, None),
        (lambda s: s[1] < 100, lambda s: (s[0], s[1] * 2), 1, None),
        (lambda s: s[1] < s[0], halved, 0, None),
        (lambda s: s[0] < 100, halved, 0, None),
    ],
)
def test_bounds(cond, body, first, wanted):
    assert steps_of(cond, body, first) == wanted
