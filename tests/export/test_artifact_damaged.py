"""Some hundred damaged files; ``python -m tests.export.hostile`` tries as many as one likes."""

import pytest

from tests.export import hostile


@pytest.mark.parametrize("make", hostile.CORPUS)
def test_damaged_programs_are_refused_in_words(make, tmp_path):
    refused = hostile.tried(make(), 80, "tests", tmp_path)
    assert refused > 60
