"""``config.numpy_rank_promotion``: in all ways that an operation goes, kept ones too."""

import threading
import warnings

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.config import watch
from stretto._engine.core.types import differ

X, Y = snp.ones((2, 3)), snp.ones(3)
BINARY = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "==": lambda x, y: x == y,
    "maximum": snp.maximum,
    "hypot": snp.hypot,
    "arctan2": snp.arctan2,
    "logaddexp": snp.logaddexp,
    "power": snp.power,
    "isclose": snp.isclose,
    "clip": lambda x, y: snp.clip(x, y, y),
    "lax.add": st.lax.add,
}
RAISE = {"numpy_rank_promotion": "raise"}


def test_shapes_differ_in_rank():
    assert not differ((2, 3), (3,))
    with st.config(**RAISE):
        assert differ((2, 3), (3,)) and not differ((2, 3), ()) and not differ((2, 3), (1, 3))


@pytest.mark.parametrize("name", BINARY)
def test_raises_also_after_a_short_way_was_kept(name):
    function = BINARY[name]
    jitted = st.jit(function)
    for _ in range(3):
        usual, compiled = function(X, Y), jitted(X, Y)
    with st.config(**RAISE):
        for call in (function, jitted, st.jit(function), lambda x, y: function(x, np.ones(3))):
            with pytest.raises(
                ValueError, match=r"differ in rank, and config\.numpy_rank_promotion"
            ):
                call(X, Y)
        assert function(X, Y[None]).shape == (2, 3) and function(X, 1.0).shape == (2, 3)
        assert function(X, snp.ones(())).shape == (2, 3)
    np.testing.assert_array_equal(function(X, Y), usual)
    np.testing.assert_array_equal(jitted(X, Y), compiled)


def test_warns():
    with st.config(numpy_rank_promotion="warn"):
        for _ in range(2):
            with pytest.warns(UserWarning, match=r"add: shapes \(2, 3\) and \(3,\) differ"):
                assert (X + Y).shape == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (X + Y).shape == (2, 3)


def test_what_is_no_promotion_is_allowed():
    with st.config(**RAISE):
        assert (X @ Y).shape == (2,)
        assert snp.where(X > 0, X, Y).shape == (2, 3)  # as in JAX
        assert snp.broadcast_to(Y, (2, 3)).shape == (2, 3)
        assert X.at[:].add(Y).shape == (2, 3)
        assert snp.outer(Y, Y).shape == (3, 3)


def test_other_threads_have_their_own():
    found = []
    with st.config(**RAISE):
        thread = threading.Thread(target=lambda: found.append((X + Y).shape))
        thread.start()
        thread.join()
        with pytest.raises(ValueError, match="differ in rank"):
            X + Y
    assert found == [(2, 3)] and watch.places == 0


def test_everywhere():
    X + Y
    st.config.numpy_rank_promotion = "raise"
    try:
        with pytest.raises(ValueError, match="differ in rank"):
            X + Y
        with st.config(numpy_rank_promotion="allow"):
            assert (X + Y).shape == (2, 3)
        with pytest.raises(ValueError, match="differ in rank"):
            X + Y
    finally:
        st.config.numpy_rank_promotion = "allow"
    assert (X + Y).shape == (2, 3) and watch.places == 0
