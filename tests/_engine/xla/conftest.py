"""A directory for caches that a test has for itself, and what is compiled while it has it."""

import pytest

import stretto as st
from stretto._engine.xla import cache, disk, pjrt
from tests.compilations import texts_compiled


@pytest.fixture
def kept_in(tmp_path, monkeypatch):
    """A directory for caches with nothing in it; memory is empty as well."""
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disk, "_warned", set())
    st.clear_caches()
    yield str(tmp_path / "programs")
    st.clear_caches()


@pytest.fixture
def compiled_anew(monkeypatch):
    """The texts that are compiled."""
    return texts_compiled(monkeypatch, cache, pjrt)


@pytest.fixture
def again():
    """A function that gives what another one gives, after all that is in memory was forgotten."""

    def run(make):
        st.clear_caches()
        return make()

    return run
