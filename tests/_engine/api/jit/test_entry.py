"""What a signature keeps: what is left out, and which result gets which argument's memory."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit.entry import aliases_of


def entry_of(f):
    (entry,) = f._entries.values()
    return entry


@pytest.mark.parametrize(
    "f, donated, expected",
    [
        (lambda a, b, c: (a + 1, b + 1, c + 1), [0, 1, 2], {0: 0, 1: 1, 2: 2}),
        (lambda a, b, c: (a + 1, b + 1, c + 1), [2], {2: 2}),
        (lambda a, b, c: (a + b, b, c.sum()), [0, 1], {0: 0, 1: 1}),
        (lambda a, b, c: (b, a), [0, 1], {0: 1, 1: 0}),  # each to itself
        (lambda a, b, c: (a + b, a), [1, 0], {1: 0, 0: 1}),
        (lambda a, b, c: a + b, [0, 1], {0: 0}),  # one result has room for one
        (lambda a, b, c: c.sum(), [0, 2], {}),
        (lambda a, b, c: (c > 0, c * 2), [0, 2], {2: 1}),  # of another type: none
        (lambda a, b, c: (), [0], {}),
    ],
)
def test_results_in_the_memory_of_arguments(f, donated, expected):
    program = st.make_graph(f)(snp.ones(3), snp.ones(3), snp.ones((2, 2)))
    found = aliases_of(program, donated)
    assert found == expected
    assert list(found) == sorted(found) and len(set(found.values())) == len(found)


def test_what_is_not_used_is_not_passed():
    table, unused = snp.arange(3.0), snp.arange(5.0)

    def f(a, b, c):
        snp.sin(unused) * b
        return a * table, c

    jitted = st.jit(f)
    jitted(snp.ones(3), snp.ones(5), 1.0)
    entry = entry_of(jitted)
    assert entry.kept == [0, 2] and not entry.taken
    assert [c is table for c in entry.constants] == [True]
    assert entry.text().count("%arg") and "%arg3" not in entry.text()
    assert entry.text() is entry.text() and entry.prepare() is entry.prepare()


def test_all_used_is_the_plain_case():
    jitted = st.jit(lambda a, b: a + b)
    for _ in range(2):  # the second call is remembered
        np.testing.assert_array_equal(jitted(snp.ones(3), snp.ones(3)), 2)
    entry = entry_of(jitted)
    assert (entry.kept, list(entry.constants), entry.single) == (None, [], True)
    assert entry.records == 1


def test_donating_calls_do_not_go_the_short_way():
    jitted = st.jit(lambda a: a + 1, donate_argnums=0)
    jitted(snp.ones(3))
    assert not entry_of(jitted).records and entry_of(jitted).taken == {0}
    idle = st.jit(lambda a: a.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match="no result can have the memory"):
        idle(snp.ones(3))
    idle(snp.ones(3))
    assert entry_of(idle).records == 1  # nothing is taken
