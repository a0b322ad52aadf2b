"""Pages are well-formed and escaped, whatever is in a card."""

import pytest

from stretto._engine.core.cards import MOST_ON_PAGE, Card, escape_html, html_of, line
from tests.pages import page_of, text_in

EVIL = "<script>alert('a' & \"b\")</script>"


@pytest.mark.parametrize(
    "card",
    [
        Card(EVIL),
        Card(EVIL, (EVIL, EVIL), (line(EVIL), ((EVIL, "op"), (EVIL, "quiet")), Card(EVIL))),
        Card("outer", (), (Card(EVIL, (), (line(EVIL),), open=False),)),
    ],
)
def test_everything_is_escaped(card):
    html = page_of(html_of(card))
    assert "<script" not in html and "&lt;script&gt;" in html
    assert EVIL in text_in(html)


def test_what_cannot_be_in_a_page_is_replaced():
    assert escape_html("a\x00b\x1b[31m\ud800c") == "a\ufffdb\ufffd[31m\ufffdc"
    assert escape_html("tab\tline\nümläut 😀") == "tab\tline\nümläut 😀"
    assert escape_html("x" * 2000) == "x" * 2000
    assert escape_html("x" * 2001) == "x" * 2000 + "…"


def test_parts_fold():
    html = page_of(html_of(Card("a", (), (Card("b", (), (line("c"),), open=False), Card("d")))))
    assert html.count("<details open>") == 1 and html.count("<details>") == 1
    assert '<div class="leaf"><b>d</b></div>' in html


def test_all_parts_of_a_card():
    inner = Card("d", (), (line("e", "op"),), open=False)
    card = Card("a", ("1", "2"), (line("x", "quiet"), Card("b"), inner), picture="<svg/>")
    assert html_of(card).partition("</style>")[2] == (
        '<details open><summary><b>a</b> <span class="quiet">1 · 2</span></summary>'
        '<figure><svg/></figure><pre><span class="quiet">x</span></pre>'
        '<div class="leaf"><b>b</b></div>'
        '<details><summary><b>d</b></summary><pre><span class="op">e</span></pre></details>'
        "</details></div>"
    )
    assert "<details open><summary><b>a</b></summary><figure>" in html_of(
        Card("a", picture="<svg/>")
    )


def test_lines_that_follow_one_another_are_one_block():
    html = html_of(Card("a", (), (line("b"), line("c"), Card("d"), line("e"))))
    assert "<pre>b\nc</pre>" in html and "<pre>e</pre>" in html


def test_a_page_is_bounded():
    html = page_of(html_of(Card("a", (), tuple([line(str(k)) for k in range(100_000)]))))
    assert html.count("\n") <= MOST_ON_PAGE + 1 and "... 99,401 more" in html


def test_a_page_has_no_colours_for_a_background():
    """So that it is legible on light and on dark ones."""
    html = html_of(Card("a"))
    assert "background:none" in html and "background:#" not in html and "color:black" not in html
