"""What JAX gives for some hundreds of expressions, Stretto gives as well."""

import json
import pathlib

import numpy as np
import pytest

from tests.compat.jax.described import EXPRESSIONS, FEW
from tests.compat.jax.running import prints

HERE = pathlib.Path(__file__).parent

REFUSED = {
    "complex64": ("jnp.arctan2(", "jnp.deg2rad(", "jnp.digitize(", "jnp.histogram(", ".max(3"),
    "bool": ("jnp.left_shift(",),
}
"""Functions that Stretto refuses for a dtype of ``FEW``, whose numbers have no order or no bits."""


def alike(ours, theirs):
    """Whether two descriptions agree; what JAX refuses may be there."""
    if theirs == "refused" or ours == theirs:
        return True
    if not (isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)):
        return isinstance(theirs, float) and np.isclose(ours, theirs, 1e-3)
    if len(ours) == 3 and isinstance(ours[2], str) and ours[:2] == theirs[:2]:
        if not ours[0].startswith(("float", "bfloat", "complex")):
            return False
        # bfloat16 has 8 bits and float16 has 11, and Stretto rounds once, last; four digits are
        # printed.
        accuracy = {"bfloat16": 2e-2, "float16": 4e-3}.get(ours[0], 2e-3)
        near_zero = {"bfloat16": 8e-3, "float16": 1e-3}.get(ours[0], 1e-5)
        both = [np.array(text.split(), float) for text in (ours[2], theirs[2])]
        return np.allclose(*both, accuracy, near_zero, equal_nan=True)
    return all(map(alike, ours, theirs))


@pytest.fixture(scope="module")
def ours():
    """What Stretto gives, from one process."""
    lines = prints(
        """
        import json, sys, warnings
        from tests.compat.jax.described import EXPRESSIONS, describe, names
        warnings.simplefilter("ignore")
        known = names(jax, jnp)
        for text in EXPRESSIONS:
            try:
                print(json.dumps(describe(eval(text, known))))
            except Exception as error:
                print(json.dumps(f"{type(error).__name__}: {error}"))
        """
    )
    return dict(zip(EXPRESSIONS, map(json.loads, lines), strict=True))


def test_values_are_those_of_jax(ours):
    theirs = json.loads((HERE / "values.json").read_text("utf-8"))
    assert theirs.keys() == ours.keys()  # else: python benchmarks/as_jax_values.py
    wrong = {
        text: (ours[text], theirs[text])
        for text in theirs
        if not alike(ours[text], without_refusals(text, ours[text], theirs[text]))
    }
    assert not wrong and len(theirs) > 600


def without_refusals(text, ours, theirs):
    """JAX's values, without those that Stretto refuses on purpose."""
    if "for d in FEW" not in text:
        return theirs
    on_purpose = [any(name in text for name in REFUSED.get(d, ())) for d in FEW]
    return [
        "refused" if one == "refused" and meant else other
        for one, other, meant in zip(ours, theirs, on_purpose, strict=True)
    ]
