"""There is one device: what asks for nothing passes, what asks for more is refused."""

import numpy as np
import pytest

from stretto._engine.ops.sharding import refuse_sharding, with_sharding_constraint


def test_no_constraint_is_none():
    tree = {"x": np.ones(2), "y": (np.zeros(3, np.int32),)}
    out = with_sharding_constraint(tree, None)
    np.testing.assert_array_equal(out["x"], tree["x"])
    assert with_sharding_constraint(tree, {"x": None, "y": (None,)})["y"][0].shape == (3,)


def test_shardings_are_refused():
    with pytest.raises(NotImplementedError, match="shardings must be None"):
        with_sharding_constraint(np.ones(2), "batch")
    with pytest.raises(NotImplementedError, match="full: sharding must be None"):
        refuse_sharding("full", sharding="batch")
    with pytest.raises(TypeError, match=r"x\['a'\] must be an array"):
        with_sharding_constraint({"a": "text"}, None)
