"""Stretches that repeat, among tokens and among equations."""

import random

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.passes.rolling.roll_loops import LEAST_COPIES, stretches, tokens_of


def numbered(text):
    """A token for each letter."""
    return np.array([ord(c) for c in text], np.uint64)


def found(text):
    return [tuple(s) for s in stretches(numbered(text))]


def test_a_stretch_between_others():
    assert found("pqr" + "abcd" * 5 + "ab" + "xyz") == [(3, 4, 22)]
    assert found("a" * 9) == [(0, 1, 9)]
    assert found("abcdefghij") == []


def test_a_token_may_come_several_times_in_a_period():
    assert found("abaabc" * 6) == [(0, 6, 36)]
    assert found("abab" * LEAST_COPIES)[0] == (0, 2, 4 * LEAST_COPIES)


def test_what_repeats_within_a_period_comes_after_it():
    first, *others = found(("ab" * 4 + "c") * 6)
    assert first == (0, 9, 54)
    assert {period for _, period, _ in others} == {2}
    assert len(others) == 6


def test_too_few_copies_are_no_stretch():
    assert found("abc" * (LEAST_COPIES - 1)) == []
    assert found("abc" * LEAST_COPIES) == [(0, 3, 3 * LEAST_COPIES)]
    assert LEAST_COPIES == 4


def test_of_many_stretches_those_that_repeat_most_are_tried():
    runs = [chr(1000 + k) * (100 - k) for k in range(70)]
    assert found("".join(runs)) == [(sum(map(len, runs[:k])), 1, 100 - k) for k in range(64)]


def test_every_stretch_repeats_and_is_as_long_as_it_can_be():
    rng = random.Random(0)
    for _ in range(200):
        piece = "".join(rng.choice("abc") for _ in range(rng.randint(1, 7)))
        text = "".join(rng.choice(["abc", "ca", piece * rng.randint(1, 9)]) for _ in range(6))
        for start, period, length in found(text):
            part = text[start : start + length]
            assert length >= LEAST_COPIES * period
            assert part[period:] == part[:-period]
            end = start + length
            assert end == len(text) or text[end] != text[end - period]
            assert not start or text[start - 1] != text[start - 1 + period]


def graph(f, *args):
    return st.make_graph(f)(*args).equations


def test_a_program_without_enough_repeats_has_no_tokens():
    x = snp.ones(3)

    def sines(count):
        def f(x):
            for _ in range(count):
                x = snp.sin(x)
            return x

        return graph(f, x)

    assert tokens_of(sines(24)) is None
    assert tokens_of(sines(25)) is not None
    tokens = tokens_of(sines(20), always=True)
    assert tokens is not None and len(set(tokens.tolist())) == 1
    assert tokens_of(sines(3), always=True) is None
    assert tokens_of(sines(4), always=True) is not None


def test_slices_at_different_places_are_of_one_kind():
    def f(x):
        y = x[0]
        for i in range(30):
            y = snp.sin(y) + x[i % 3]
        return y

    tokens = tokens_of(graph(f, snp.ones((3, 2))))
    assert tokens is not None
    first, *_ = stretches(tokens)
    assert (first.period, first.length // first.period) == (4, 30)


def test_operations_with_effects_are_alone():
    def f(x):
        for _ in range(30):
            st.debug.print("{}", x[0])
            x = x * x
        return x

    tokens = tokens_of(graph(f, snp.ones(2)), always=True)
    assert tokens is not None
    assert stretches(tokens) == []
