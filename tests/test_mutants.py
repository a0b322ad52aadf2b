"""Mutants: which lines are broken, and how; and that breaking one is noticed, or is not."""

import ast
import textwrap

import pytest

from tests import mutants

SOURCE = '''
"""A docstring, with 1 and True."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import a
X: int = 3
def f(x: int = 4, *, flag: bool = False) -> "1 + 1":
    """Not 5."""
    if x < 2 and not flag:
        raise ValueError(f"{x + 1} is" + "small")
    x += 1
    y.z = x * 2.0
    g(x)
    logger.warning("%s", 7)
    for _ in zip(x, x, strict=True):
        continue
    return x if flag else -x
'''


def broken_lines(source):
    return {mutant.after.strip() for mutant in mutants.mutants_of("a.py", source)}


def test_what_is_broken_and_what_is_not():
    assert broken_lines(SOURCE) == {
        "X: int = 4",
        'def f(x: int = 5, *, flag: bool = False) -> "1 + 1":',
        'def f(x: int = 4, *, flag: bool = True) -> "1 + 1":',
        "if x <= 2 and not flag:",
        "if x < 3 and not flag:",
        "if x < 2 or not flag:",
        "if (not (x < 2 and not flag)):",
        "pass",
        "x += 2",
        "y.z = x + 2.0",
        "y.z = x * 2.02",
        "return x if (not (flag)) else -x",
    }


@pytest.mark.parametrize(
    "line, after",
    [
        ("(a) == (b)", "(a) != (b)"),
        ("a is not  b", "a is  b"),
        ("a not in b", "a in b"),
        ("a ** b", "a * b"),
        ("'ä' + f(a) - b", "'ä' + f(a) + b"),
        ("True", "False"),
        ("0.0", "0.01"),
    ],
)
def test_each_kind(line, after):
    assert after in broken_lines(f"x = [{line}]".replace("x = [", "x = (")[:-1] + ")") or (
        f"x = ({after})" in broken_lines(f"x = ({line})")
    )


def test_each_mutant_is_another_program():
    for mutant in mutants.mutants_of("a.py", SOURCE):
        text = mutants.broken(SOURCE, mutant)
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(SOURCE))
        changed = [a != b for a, b in zip(text.split("\n"), SOURCE.split("\n"), strict=True)]
        assert sum(changed) == 1


def test_those_of_the_engine_are_programs_and_the_seed_decides():
    first = mutants.chosen(mutants.ROOT, 30, 1)
    assert first == mutants.chosen(mutants.ROOT, 30, 1)
    assert first != mutants.chosen(mutants.ROOT, 30, 2)
    assert len({(m.path, m.line) for m in first}) == 30
    for mutant in first:
        text = (mutants.ROOT / mutant.path).read_text("utf-8")
        ast.parse(mutants.broken(text, mutant))


def test_every_line_of_the_list_is_there_and_can_be_broken_so():
    texts = [p.read_text("utf-8") for p in (mutants.ROOT / mutants.ENGINE).rglob("*.py")]
    for (before, after), reason in mutants.equivalent().items():
        (text, *_) = [text for text in texts if before in text]
        found = {(m.before.strip(), m.after.strip()) for m in mutants.mutants_of("", text)}
        assert (before, after) in found
        assert reason.strip()


def test_a_line_of_the_list_may_be_broken_in_several_ways(tmp_path):
    rows = """
        mutant = [
            {before = "x < 1", after = ["x <= 1", "x < 2"], because = "both hold"},
            {before = "y", after = "z", because = "names"},
        ]
    """
    (tmp_path / "list.toml").write_text(textwrap.dedent(rows))
    assert mutants.equivalent(tmp_path / "list.toml") == {
        ("x < 1", "x <= 1"): "both hold",
        ("x < 1", "x < 2"): "both hold",
        ("y", "z"): "names",
    }


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of one module, of which one line is tested and the other is not."""
    files = {
        "src/stretto/_engine/a.py": "def f(x):\n    return x + 1\n\ndef g(x):\n    return x + 1\n",
        "tests/_engine/test_a.py": """
            import sys
            sys.path.insert(0, "src/stretto/_engine")
            from a import f
            def test_f():
                assert f(1) == 2
        """,
    }
    for name, text in files.items():
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_text(textwrap.dedent(text))
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "here")
    return mutants.Copy(tmp_path / "copy", tmp_path / "no-cache")


def test_a_mutant_is_noticed_where_a_test_fails(checkout):
    path = "src/stretto/_engine/a.py"
    text = (checkout.root / path).read_text()
    found = [m for m in mutants.mutants_of(path, text) if m.kind == "operator flipped"]
    by = [checkout.noticed(mutant, [["tests/_engine/test_a.py"]]) for mutant in found]
    assert by == ["tests/_engine/test_a.py::test_f", None]
    assert (checkout.root / path).read_text() == text


def test_a_test_that_fails_anyway_notices_nothing(checkout):
    path = "src/stretto/_engine/a.py"
    test = checkout.root / "tests" / "_engine" / "test_a.py"
    test.write_text(test.read_text().replace("== 2", "== 3"))
    (first, *_) = mutants.mutants_of(path, (checkout.root / path).read_text())
    assert checkout.noticed(first, [["tests/_engine/test_a.py"]]) is None


def test_the_report_counts(capsys):
    mutant = mutants.Mutant("a.py", 0, 0, 1, "2", "constant moved", "1")
    results = [(mutant, "test_a", False)] * 19 + [(mutant, "only speed", True)]
    assert mutants.report(iter(results)) == 0
    assert "19 of 19 noticed; 1 more" in capsys.readouterr().out
    assert mutants.report(iter([*results, (mutant, None, False)] + [(mutant, None, False)])) == 1
    out = capsys.readouterr().out
    assert "19 of 21 noticed" in out and out.count("a.py:1: constant moved") == 24
