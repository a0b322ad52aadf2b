"""Cards are cut to so many lines, the deepest first."""

from stretto._engine.core.showing.card import Card, line, pruned


def lines_of(card):
    return 1 + sum([lines_of(item) if isinstance(item, Card) else 1 for item in card.body])


def nested(depth, width):
    inner = tuple([nested(depth - 1, width) for _ in range(width)]) if depth else (line("leaf"),)
    return Card(f"depth {depth}", (), inner)


def test_a_small_card_stays():
    card = nested(2, 2)
    assert pruned(card, 100) == card


def test_what_is_deepest_goes_first():
    card = pruned(nested(3, 5), 40)
    assert lines_of(card) == 1 + 5 + 25
    assert [len(part.body) for part in card.body] == [5] * 5


def test_a_wide_card_says_how_many_are_left_out():
    card = pruned(Card("wide", (), tuple([line(str(k)) for k in range(1000)])), 10, "see there")
    assert lines_of(card) == 11
    assert card.body[-1] == (("... 991 more: see there", "quiet"),)


def test_many_in_each_of_many():
    wide = Card("wide", (), tuple([Card("inner", (), (line("x"),) * 50)] * 50))
    assert lines_of(pruned(wide, 20)) <= 22
