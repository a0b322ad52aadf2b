"""What is shown of compiled functions, reports, ragged arrays and buckets."""

import dataclasses

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.cards import (
    card_of_jitted,
    card_of_ragged,
    card_of_report,
    text_of_report,
)
from stretto._engine.core.cards import bars
from tests.pages import page_of, printed, text_in


def test_a_jitted_function_lists_its_signatures():
    @st.jit
    def affine(w, x):
        return w * x + 1

    assert "not called yet" in text_in(affine) and repr(affine) == "<jitted affine>"
    affine(2.0, snp.ones(3))
    affine(snp.ones((2, 3)), snp.ones(3))
    text = text_in(affine)
    assert "2 signatures" in text and "(w: float32[2,3], x: float32[3])  compiled" in text
    assert "3 operations" in text and "x: float32[3]" in printed(affine)


def test_static_donated_and_interpreted():
    @st.config(interpret_small=True)
    def run():
        f = st.jit(lambda x, name: x * 2, static_argnames="name")
        f(snp.ones(3), name="<script>")
        return f

    text = text_in(run())
    assert "name='<script>'" in text and "interpreted" in text and "static 1, name" in text
    donating = st.jit(lambda x: x, donate_argnums=(0,))
    assert "donated 0" in text_in(donating)
    donating.trace(snp.ones(2))
    assert "traced, 0 operations" in text_in(donating)


def test_many_signatures_stay_short():
    @st.jit
    def f(tree):
        return tree

    for n in range(60):
        f.trace({f"name{k}": snp.ones(n) for k in range(200)})
    assert "... 40 more" in text_in(f) and "60 signatures" in text_in(f)
    more = ["more" in row[0][0] for row in card_of_jitted(f).body]
    assert more == [False] * 15 + [True] + [False] * 5
    assert printed(f).count("\n") <= 80


def test_axes_of_any_size():
    f = st.jit(lambda x: x * 2, dynamic_axes=({0: "n"},))
    f(snp.ones(3)), f(snp.ones(30))
    assert "float32[n]" in text_in(f) and "compiled for 2 buckets" in text_in(f)


def test_reports():
    report = st.explain(lambda x: snp.sin(x) @ x.T, snp.ones((300, 300)))
    assert repr(report) == str(report)
    for text in str(report).split("\n"):
        assert text.strip() in text_in(report)
    assert "memory:" in printed(report)
    f = st.jit(lambda x: (x * 2).max(0), dynamic_axes=({0: "n"},))
    shapes = st.explain_shapes(f, snp.ones(12))
    assert repr(shapes) == str(shapes) and "reduce_max" in text_in(shapes)


def test_a_long_report_is_cut():
    @dataclasses.dataclass
    class Report:
        def __str__(self):
            return "\n".join(["<b>head</b>", *["a", "  b", "    c"] * 500])

    assert text_of_report(Report()).count("\n") == 39
    assert text_of_report(Report()).endswith("1,462 more lines: print it, for all of it")
    card = card_of_report(Report())
    assert len(card.body) == 500 and card.body[0].title == "a"


def test_ragged_arrays():
    ragged = st.ragged([snp.ones((n, 2)) for n in range(1, 60)])
    text = text_in(ragged)
    assert "float32[59,*,2]" in text and "lengths from 1 to 59, mean 30" in text
    assert "1,770 elements" in text and "... 39 more ..." in text
    assert "▁" not in printed(ragged).split("\n")[0]


def test_traced_and_donated_ragged_arrays():
    pages = []

    @st.jit
    def f(ragged):
        pages.append(page_of(ragged))
        return ragged

    f(st.ragged([snp.ones(2), snp.ones(3)]))
    assert "traced" in pages[0]
    ragged = st.ragged([snp.ones(2), snp.ones(3)])
    ragged.lengths.delete()
    assert "deleted" in text_in(ragged)


@pytest.mark.parametrize(
    ("buckets", "words"),
    [
        (st.Buckets(), "sizes 16, 24, 32, 48, 72, 104,"),
        (st.Buckets(sizes=[4, 8]), "sizes 4, 8"),
        (st.Buckets(sizes=range(1, 1000)), "... 979 more, 995, 996"),
    ],
)
def test_buckets(buckets, words):
    before = repr(st.Buckets())
    assert words in text_in(buckets) and "Buckets(" in printed(buckets)
    assert repr(st.Buckets()) == before


def test_twenty_buckets_are_shown():
    (row,) = [text for text in text_in(st.Buckets()).split("\n") if "sizes 16" in text]
    numbers = row[row.index("sizes ") + 6 :].split(", ")
    assert numbers[20].startswith("...") and all(n.isdigit() for n in numbers[:20])


def test_the_picture_of_lengths_has_twenty_bars():
    ragged = st.ragged([snp.ones(n) for n in range(1, 60)])
    card = card_of_ragged(ragged)
    assert card.picture == bars(np.arange(1.0, 60.0), 20)


@pytest.mark.parametrize(("count", "left_out"), [(19, 0), (20, 0), (21, 1)])
def test_up_to_twenty_are_shown(count, left_out):
    more = f"... {left_out} more"
    assert (more in text_in(st.Buckets(sizes=range(1, count + 1)))) is bool(left_out)
    assert (more in text_in(st.ragged([snp.ones(1)] * count))) is bool(left_out)
    assert not left_out or "... 2 more" not in text_in(st.Buckets(sizes=range(1, count + 1)))


def test_a_report_is_folded_at_what_is_indented():
    card = card_of_report("head\none\n  of it\n    more\ntwo\nthree\n  last")
    assert card.title == "head" and len(card.body) == 3
    first, second, third = card.body
    assert (first.title, len(first.body), third.title, len(third.body)) == ("one", 2, "three", 1)
    assert not hasattr(second, "title")
