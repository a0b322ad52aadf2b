"""A fixture for tests of what XLA is asked to do where there are no kernels of our own."""

import pytest

import stretto as st


@pytest.fixture
def without_kernels():
    """Have products written as XLA's own operations."""
    with st.config(kernels=False):
        yield
