"""Arguments for shardings take None alone."""

import pytest

from stretto._engine.ops.sharding import refuse_sharding


def test_shardings_are_refused():
    refuse_sharding("full", sharding=None)
    with pytest.raises(NotImplementedError, match="full: sharding must be None: constrain"):
        refuse_sharding("full", sharding="batch")
