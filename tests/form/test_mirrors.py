"""Tests mirror sources: every module has a test file of its name, or is listed here with a reason.

A new module takes a test file in the mirrored folder: ``src/stretto/nn/linear.py`` has
``tests/nn/test_linear.py``; an underscore in front of a name is left out. Tests of a module with
several subjects may stand in several files, each with one more word: ``test_linear_layers.py``.
"""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
SOURCES, TESTS = ROOT / "src" / "stretto", ROOT / "tests"

EXPORTS = "only names of other modules"

WITHOUT = {
    "__main__.py": "one call; test_main runs it",
    "as_jax/__main__.py": "as_jax/test_main runs it",
    "checkpoint_policies.py": EXPORTS,
    "fft.py": EXPORTS,
    "linalg.py": EXPORTS,
    "scipy/integrate.py": EXPORTS,
    "scipy/special.py": EXPORTS,
    "sharding.py": EXPORTS,
    "wiring.py": EXPORTS,
}
"""The modules without a test file of their own, and why."""


def test_every_module_has_a_test_file_of_its_name_or_a_reason():
    missing = set()
    for path in SOURCES.rglob("*.py"):
        module = path.relative_to(SOURCES)
        mirrored = TESTS / module.with_name(f"test_{module.name.lstrip('_')}")
        parts = mirrored.parent.glob(f"{mirrored.stem}_*.py")
        if module.name != "__init__.py" and not mirrored.is_file() and not any(parts):
            missing.add(module.as_posix())
    assert not sorted(missing - WITHOUT.keys()), "these modules need a test file of their name"
    assert not sorted(WITHOUT.keys() - missing), (
        "these are listed, but have a test file, or are gone"
    )
