"""Files of former versions: they give what they gave, with slopes."""

import pytest

import stretto as st
from stretto._engine import VERSION
from tests.export import kept
from tests.export.exchange import agrees, stored

PATHS = sorted([p for p in kept.FOLDER.glob("*/*") if p.suffix in kept.SUFFIXES.values()])


@pytest.mark.parametrize("path", PATHS, ids=[f"{p.parent.name}-{p.name}" for p in PATHS])
def test_a_file_that_was_kept_gives_what_it_gave(path):
    with st.config(enable_x64=True):
        agrees(st.export.load(path), stored(path.with_suffix(".npz")), derivatives=True)


def test_this_version_has_its_files():
    """``python -m tests.export.kept`` writes them, before the version is released."""
    mine = [p.name for p in PATHS if p.parent.name == VERSION]
    assert mine == ["function.jax", "program.stretto", "sized.jax"]


def test_files_are_written_once(capsys):
    assert kept.main() == 1
    assert "is there: a file that was released is never written again" in capsys.readouterr().out
