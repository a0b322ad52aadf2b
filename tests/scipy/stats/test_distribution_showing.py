"""What is shown of distributions."""

import pytest

from stretto.scipy import stats
from stretto.scipy.stats.distribution import Distribution
from tests.pages import page_of, printed, text_in

ALL = {x for name in stats.__all__ if isinstance(x := getattr(stats, name), Distribution)}


@pytest.mark.parametrize("distribution", sorted(ALL, key=lambda d: d.name), ids=lambda d: d.name)
def test_each(distribution):
    html = page_of(distribution)
    assert f"distribution {distribution.name}" in html
    for word in (*distribution.shapes, *distribution.methods):
        assert word in text_in(distribution)
    drawn = not distribution.shapes and "pdf" in distribution.methods
    assert ("<path" in html) == drawn
    assert printed(distribution).startswith("distribution ")


def test_the_support_is_told():
    assert "support from 0 to inf" in text_in(stats.expon)
    assert "loc=0, scale=1" in text_in(stats.norm)
