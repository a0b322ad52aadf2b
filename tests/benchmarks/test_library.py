"""The comparison of what YNNPACK should take: a row, with a figure for each choice."""

import re

from benchmarks import library


def test_a_row_has_a_figure_for_each_choice(capsys):
    library.main(["--only", "growth-small-n1-forward-own", "--rounds", "1"])
    shown = capsys.readouterr().out
    assert "growth" in shown
    assert len(re.findall(r"\(\d+\.\d\d\)", shown)) == len(library.CHOICES)
