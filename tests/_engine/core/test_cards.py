"""Cards are cut to so many lines, the deepest first."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.cards import (
    MOST_LINES,
    Card,
    amount,
    card_of,
    counted,
    ends,
    first_lines,
    line,
    number,
    one_line,
    program_card,
    prune,
    short,
    size,
)
from stretto._engine.core.lazy import brief
from tests.pages import page_of, printed, text_in


def lines_of(card):
    return 1 + sum([lines_of(item) if isinstance(item, Card) else 1 for item in card.body])


def nested(depth, width):
    inner = tuple([nested(depth - 1, width) for _ in range(width)]) if depth else (line("leaf"),)
    return Card(f"depth {depth}", (), inner)


def test_a_small_card_stays():
    card = nested(2, 2)
    assert prune(card, 100) == card


def test_what_is_deepest_goes_first():
    card = prune(nested(3, 5), 40)
    assert lines_of(card) == 1 + 5 + 25
    assert [len(part.body) for part in card.body] == [5] * 5


def test_a_wide_card_says_how_many_are_left_out():
    card = prune(Card("wide", (), tuple([line(str(k)) for k in range(1000)])), 10, "see there")
    assert lines_of(card) == 11
    assert card.body[-1] == (("... 991 more: see there", "quiet"),)


def test_many_in_each_of_many():
    wide = Card("wide", (), tuple([Card("inner", (), (line("x"),) * 50)] * 50))
    assert lines_of(prune(wide, 20)) <= 22


def test_sizes():
    assert [size(n) for n in (0, 999, 1500, 2.5e6, 12e9)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "2.5 MB",
        "12.0 GB",
    ]


def test_units_begin_at_one():
    assert [size(n) for n in (999.4, 1000, 999_900, 10**6, 999_900_000, 10**9, 5 * 10**12)] == [
        "999 bytes",
        "1.0 kB",
        "999.9 kB",
        "1.0 MB",
        "999.9 MB",
        "1.0 GB",
        "5,000.0 GB",
    ]


@pytest.mark.parametrize(
    ("most", "lines"),
    [(11, 11), (10, 7), (7, 7), (6, 3), (3, 3), (2, 3), (1, 2)],
)
def test_how_many_lines_are_left(most, lines):
    """Whole depths first: eleven lines, of which four are the deepest, and four the next."""
    assert lines_of(prune(nested(2, 2), most)) == lines


def test_lines_that_are_left_out_of_inner_cards():
    card = Card("outer", (), (Card("inner", (), (line("a"), line("b"), line("c"))), line("d")))
    assert prune(card, 6) == card
    assert prune(card, 5).body == (Card("inner"), line("d"))
    assert prune(card, 2).body == (Card("inner"), line("... 1 more", "quiet"))
    assert prune(Card("one", (), (line("a"), line("b"))), 2, "see there").body == (
        line("a"),
        line("... 1 more: see there", "quiet"),
    )


@pytest.mark.parametrize(
    ("most", "shown"), [(3, [0, 1, 2]), (4, [0, 1, 2, 9]), (8, [0, 1, 2, 3, 4, 5, 8, 9])]
)
def test_a_quarter_is_of_the_last(most, shown):
    first, left_out, last = ends(range(10), most)
    assert ([*first, *last], left_out) == (shown, 10 - most)


def test_numbers_and_counts():
    assert [number(x) for x in (0.0, 1 / 3, 12345.0)] == ["0", "0.3333", "1.234e+04"]
    assert counted(1, "array") == "1 array" and counted(2000, "array") == "2,000 arrays"


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 100])
def test_ends_are_all_or_so_many(count):
    first, left_out, last = ends(list(range(count)), 6)
    shown = [*first, *last]
    assert len(shown) == min(count, 6) and left_out == count - len(shown)
    assert shown[:1] == list(range(count))[:1] and shown[-1:] == list(range(count))[-1:]


def test_lines_say_how_many_are_left_out():
    assert first_lines("a\nb", "print it", 2) == "a\nb"
    assert first_lines("a\nb\nc", "print it", 2) == "a\n... 2 more lines: print it"
    assert first_lines("\n" * 1000, "print it").count("\n") == MOST_LINES - 1
    forty = "\n".join("x" * 40)
    assert first_lines(forty, "print it") == forty
    assert first_lines(f"{forty}\nx", "print it").endswith("x\n... 2 more lines: print it")


def test_one_line():
    assert one_line("a\n  b") == "a b"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    assert one_line("x" * 80) == "x" * 80 and one_line("x" * 81) == "x" * 79 + "…"


@brief
class State(NamedTuple):
    count: Any
    mean: Any


@brief
@st.tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Record:
    count: Any
    mean: Any


X, LARGE = snp.int32(7), {"w": snp.ones((30, 30)), "b": snp.ones(30)}


def test_small_ones_are_whole():
    for cls in (State, Record):
        expected = f"{cls.__name__}(count=3, mean={{'w': Array([1., 1.], dtype=float32)}})"
        assert repr(cls(3, {"w": snp.ones(2)})) == expected


def test_twelve_leaves_and_sixty_numbers_are_few():
    for few, many in [([X] * 11, [X] * 12), (snp.ones(60), snp.ones(61))]:
        assert repr(State(1, few)) == f"State(count=1, mean={few!r})"
        assert repr(State(1, many)) != f"State(count=1, mean={many!r})"


def test_large_ones_say_how_much_there_is():
    for cls in (State, Record):
        assert repr(cls(snp.int32(7), LARGE)) == (
            f"{cls.__name__}(count=Array(7, dtype=int32), mean=<dict of 2 arrays, 930 numbers, "
            f"3.7 kB>)"
        )


def test_a_page_lists_the_arrays():
    for cls in (State, Record):
        state = cls(snp.int32(7), {**LARGE, "<script>": snp.ones(2)})
        text = text_in(state)
        assert "float32[30,30]" in text and "<script>" in text and "932 numbers" in text
        assert "float32[30,30]" in printed(state)


def test_huge_ones_stay_short():
    state = State(0, {f"layer{k}": snp.ones(100) for k in range(5000)})
    assert len(repr(state)) < 200 and len(page_of(state)) < 150_000
    assert printed(state).count("\n") <= 41


def test_other_leaves():
    for mean in (None, (), "x" * 1000, object(), np.ones(1000), [1, 2.0], {"a": None}):
        state = State(0, mean)
        assert "\n" not in repr(state) and len(repr(state)) < 6000
        assert "State" in text_in(state)


def test_traced_and_donated_arrays():
    seen = []

    @st.jit
    def f(x):
        seen.append((repr(State(0, [x] * 20)), page_of(State(0, [x] * 20))))
        return x

    f(snp.ones((9, 9)))
    assert "list of 20 arrays" in seen[0][0] and "traced float32[9,9]" in seen[0][1]
    gone = snp.ones((9, 9))
    gone.delete()
    state = State(gone, LARGE)
    assert "count=float32[9,9]" in repr(state) and "State" in page_of(state)


def test_amounts():
    assert amount(()) == "0 arrays" and amount(snp.ones(1)) == "1 array, 1 number, 4 bytes"
    assert short(snp.ones(3)) == "Array([1., 1., 1.], dtype=float32)"
    assert short(snp.ones(30)) == "float32[30]"
    assert short(snp.ones(4)) == repr(snp.ones(4)) and short(snp.ones(5)) == "float32[5]"
    assert short(np.ones((5, 2))) == "NumPy float64[5,2]" and short([1, "a"]) == "[1, 'a']"
    assert short([snp.ones(2), 3, np.ones(3)]) == "<list of 2 arrays, 5 numbers, 32 bytes>"
    assert amount([np.ones((), "int8"), "a"]) == "1 array, 1 number, 1 bytes"
    assert amount("a") == "0 arrays"


def test_fields_with_a_tree_fold_and_others_are_lines():
    card = card_of(State(snp.ones(5), {"w": snp.ones((2, 3)), "b": 7}))
    assert (card.title, card.facts) == ("State", ("2 arrays, 11 numbers, 44 bytes",))
    assert card.body == (
        line("count: float32[5]"),
        Card(
            "mean",
            ("1 array, 6 numbers, 24 bytes",),
            (line("['b']  7"), line("['w']  float32[2,3]")),
            open=False,
        ),
    )


def test_operations_are_set_apart_and_loops_fold():
    def f(x):
        return st.lax.fori_loop(0, 3, lambda i, c: snp.sin(c), x)

    program = st.make_graph(f)(1.0)
    html = page_of(program)
    assert '<span class="op">sin</span>' in html
    folded = html.split("<details>")
    assert len(folded) == 2 and folded[1].startswith("<summary><b>body</b>")
    assert "sin" in folded[1] and "Program f" in html and "1 input" in html
    assert "sin" in printed(program)


def test_all_of_its_text_is_there():
    def f(x, y):
        return st.lax.cond(x > 0, lambda a: a * 2, st.jit(snp.cos), y)

    program = st.make_graph(f)(1.0, 2.0)
    words = lambda text: " ".join(text.split()).replace(":", "")
    shown = words(text_in(program))
    for text in str(program).split("\n"):
        assert words(text) in shown


def test_names_are_escaped():
    def f(x):
        return x + 1

    f.__name__ = "<script>"
    assert "<script>" in text_in(st.make_graph(f)(1.0))


def test_a_long_program_is_cut():
    def f(x):
        for _ in range(5000):
            x = snp.sin(x)
        return x

    program = st.make_graph(f)(1.0)
    assert "print(program) shows all of it" in text_in(program)
    assert "5,000 equations" in text_in(program)
    assert str(program).count("\n") == 5001 and repr(program) == "<Program f: 5000 equations>"
    assert printed(program).count("\n") < 60


@pytest.mark.parametrize(("equations", "is_cut"), [(398, False), (399, True)])
def test_of_how_many_lines_a_program_is_shown(equations, is_cut):
    """400: the equations, and what goes in and what comes out on lines of their own."""

    def f(x):
        for _ in range(equations):
            x = snp.sin(x)
        return x

    program = st.make_graph(f)(1.0)
    card = program_card(program)
    assert len(card.body) == min(str(program).count("\n") + 1, 401)
    assert ("there is more" in card.body[-1][0][0]) is is_cut


def test_one_without_equations():
    assert "0 equations" in text_in(st.make_graph(lambda: ())())
