"""Every primitive of the package has each rule, given or refused, and a law that checks it."""

import importlib.util
import pkgutil
import sys
from pathlib import Path

import pytest

import stretto
from stretto._engine.core.primitive import CARRIED, PRIMITIVES, RULES, ZERO_DERIVATIVE, Refused
from stretto._engine.core.types import kind_of
from stretto.laws import Law

HERE = Path(__file__).parents[1]
OTHERS = ("__main__", "as_jax", "compat", "demo", "torch")
"""What begins so runs something when it is imported, needs PyTorch, or is JAX's names."""

# An operation that is loaded when it is first used is one of ours as well.
for module in pkgutil.walk_packages(stretto.__path__, "stretto."):
    if not module.name.removeprefix("stretto.").startswith(OTHERS):
        importlib.import_module(module.name)
OURS = [p for p in PRIMITIVES if p.__module__.startswith("stretto.")]


def laws_of(path: Path) -> list[Law]:
    """The list ``LAWS`` of a test module, found as pytest has loaded it, else by its path."""
    if "LAWS" not in path.read_text(encoding="utf-8"):
        return []
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return getattr(module, "LAWS", [])
    name = "_laws_" + "_".join(path.relative_to(HERE).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, "LAWS", [])


def test_every_primitive_has_a_law():
    named = {law.primitive for path in sorted(HERE.rglob("test_*.py")) for law in laws_of(path)}
    missing = [f"  {p.__module__}.{p.__name__}" for p in OURS if p not in named]
    assert not missing, (
        "no law names these primitives; add law(Primitive, function, arguments...) to the list "
        "LAWS of the test module that mirrors the source:\n" + "\n".join(missing)
    )


def test_every_kind_of_dtype_accepted_has_a_law():
    checked: dict[type, set[str]] = {}
    for path in sorted(HERE.rglob("test_*.py")):
        for law in laws_of(path):
            kinds = {kind_of(arg.dtype) for arg in law.args}
            checked.setdefault(law.primitive, set()).update(kinds)
    missing = [
        f"  {p.__name__}: {', '.join(sorted(p.accepts - checked[p]))}"
        for p in OURS
        if getattr(p, "accepts", set()) - checked[p]
    ]
    assert not missing, "no law checks these kinds:\n" + "\n".join(missing)


@pytest.mark.parametrize("primitive", OURS, ids=lambda p: p.name)
def test_every_rule_is_given_or_refused(primitive):
    for name in RULES:
        rule = getattr(primitive, name)
        made = rule is ZERO_DERIVATIVE or rule is CARRIED or isinstance(rule, Refused)
        assert made or callable(rule), name
        if isinstance(rule, Refused):
            assert rule.why, f"{primitive.name}: {name} is refused without a reason"


def test_names_are_told_apart():
    names = [p.name for p in OURS]
    assert sorted(names) == sorted(set(names))
