"""Here convolutions are written as XLA's operations, in the forms that those have."""

import pytest

import stretto as st


@pytest.fixture(autouse=True)
def _without_kernels():
    with st.config(kernels=False):
        yield
