"""The names under which users find custom batching."""

import stretto as st
from stretto import custom_batching


def test_names():
    assert st.custom_batching is custom_batching
    assert custom_batching.__all__ == ["custom_vmap", "sequential_vmap"]
    assert st.custom_vmap is custom_batching.custom_vmap
    assert st.sequential_vmap is custom_batching.sequential_vmap
