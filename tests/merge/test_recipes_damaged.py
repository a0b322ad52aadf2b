"""Some damaged files; ``python -m tests.merge.fuzz`` tries as many as one likes."""

import pytest

from tests.merge import fuzz


@pytest.mark.parametrize("kind", fuzz.KINDS, ids=lambda kind: kind.__name__)
def test_damaged_files_are_refused_in_words_or_merged(kind):
    counts = fuzz.storm(40, 0, [kind])
    assert counts.total() == 40
    assert sum(n for what, n in counts.items() if "refused" in what) > 5
