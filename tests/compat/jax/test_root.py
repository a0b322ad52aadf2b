"""The names of ``jax`` itself, and of all modules below it."""

from stretto.compat.jax import root
from stretto.compat.jax.modules import ROWS
from tests.compat.jax.running import prints


def test_names_that_it_lists_are_there():
    assert all([hasattr(root, name) for name in root.__all__]) and root.__doc__


def test_all_are_found_as_jax():
    code = "\n".join(f"import jax.{path}" for path in ROWS) + "\nprint(len(dir(jax)) > 100)"
    assert prints(code) == ["True"]
