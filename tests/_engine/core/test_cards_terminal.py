"""What rich prints of cards."""

import subprocess
import sys

from stretto._engine.core.cards import Card, line, renderable_of
from tests.pages import printed


def test_a_tree():
    card = Card("a", ("one", "two"), (line("b"), line("c"), Card("d", (), (line("e"),))))
    assert printed(renderable_of(card)) == "a one · two\n├── b\n│   c\n└── d\n    └── e\n"


def test_markup_is_not_read():
    text = "[bold red]x[/] [link=file:///]y"
    assert text in printed(renderable_of(Card(text, (), (line(text),))))


def test_the_sketch_comes_first():
    assert printed(renderable_of(Card("a", (), (line("b"),), sketch="▁█"))) == "a\n└── ▁█\n    b\n"


def test_at_most_some_forty_lines():
    many = Card("a", (), tuple([line(str(k)) for k in range(1000)]))
    assert printed(renderable_of(many)).count("\n") <= 41
    assert printed(renderable_of(many)).split()[-4:] == ["37", "...", "962", "more"]


def test_lines_after_a_card_are_a_piece_of_their_own():
    card = Card("a", (), (line("b"), Card("c"), line("d"), line("e"), Card("f")))
    assert printed(renderable_of(card)) == "a\n├── b\n├── c\n├── d\n│   e\n└── f\n"


def test_rich_is_imported_by_those_who_print_with_it_alone():
    code = (
        "import sys, stretto as st\n"
        "x = st.numpy.ones(3)\n"
        "repr(x), x._repr_html_(), hasattr(x, '__rich__')\n"
        "assert 'rich' not in sys.modules\n"
        "x.__rich__()\n"
        "assert 'rich' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
