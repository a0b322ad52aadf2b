"""The check of docstrings: each rule refuses what breaks it, and nothing else."""

import importlib.util
import itertools
import sys
import textwrap

import pytest

from tests.form import docstrings

NUMBERS = itertools.count()

GOOD = '''
def public(x: float, *rest: int, n: int = 1) -> float:
    """Multiply a number.

    Args:
        x: a number.
        *rest: not used.
        n: by which to multiply.

    Returns:
        The product.

    Raises:
        ValueError: ``n`` is negative.

    As NumPy's ``multiply``.

    >>> 2 * 3
    6
    """
    if n < 0:
        raise ValueError("public: n must not be negative")
    return x * n
'''

CLASS = '''
class public:
    """A number of things.

    Args:
        n: how many.

    Raises:
        ValueError: ``n`` is negative.

    >>> 1 + 1
    2
    """

    def __init__(self, n: int) -> None:
        if n < 0:
            raise ValueError("public: n must not be negative")
        self.n = n

    @property
    def twice(self) -> int:
        """Twice as many."""
        return 2 * self.n

    @classmethod
    def of(cls, text: str) -> "public":
        """Make one of a text.

        Args:
            text: the number, in digits.

        Returns:
            The number.
        """
        return cls(int(text))

    def more(self, by: int) -> int:
        """Add to the number.

        Args:
            by: how many more.

        Returns:
            The sum.
        """
        return self.n + by
'''


@pytest.fixture
def faults(tmp_path, monkeypatch):
    """What is wrong with the name ``public`` of a module with this source."""
    monkeypatch.setattr(docstrings, "SOURCES", tmp_path)

    def faults(source, value="public"):
        name = f"checked_{next(NUMBERS)}"
        path = tmp_path / f"{name}.py"
        path.write_text("from __future__ import annotations\n" + textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return [fault.text for fault in docstrings.faults_of(value, getattr(module, value))]

    return faults


def changed(source, old, new):
    assert old in source
    return source.replace(old, new)


@pytest.mark.parametrize("source", [GOOD, CLASS])
def test_what_has_the_form_passes(faults, source):
    assert faults(source) == []


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("a number.\n\n", "a number\n\n", "does not begin with one sentence on one line"),
        ("Multiply a number.", "Multiply\n    a number.", "does not begin with one sentence"),
        ("        n: by which to multiply.\n", "", "Args lacks n"),
        ("        *rest: not used.\n", "", "Args lacks rest"),
        ("x: a number.", "y: a number.", "Args lacks x"),
        (
            "x: a number.",
            "x: a number.\n        y: another.",
            "Args names y, which it does not take",
        ),
        ("    Returns:\n        The product.\n\n", "", "has no Returns"),
        ("-> float:", "-> None:", "has Returns, and returns nothing"),
        ("        ValueError: ``n`` is negative.\n", "", "Raises lacks ValueError"),
        ("raise ValueError", "raise TypeError", "Raises lacks TypeError"),
        ("raise ValueError", "raise ValueError if x else KeyError", "Raises lacks KeyError"),
        ("    >>> 2 * 3\n    6\n", "", "has no example"),
        ("x: float", "x", "no annotation of x"),
        (" -> float:", ":", "no annotation of the result"),
    ],
)
def test_each_rule_refuses(faults, old, new, fault):
    (first, *_) = faults(changed(GOOD, old, new))
    assert first.startswith(fault)


def test_no_docstring_is_one_fault(faults):
    assert faults("def public(x):\n    raise ValueError\n")[0] == "has no docstring"


def test_the_order_of_parameters_and_sections(faults):
    swapped = changed(GOOD, "        x: a number.\n        *rest: not used.\n", "")
    swapped = changed(swapped, "multiply.\n\n", "multiply.\n        *rest: -.\n        x: -.\n\n")
    assert faults(swapped) == ["Args is not in the order of the parameters"]
    returns = "    Returns:\n        The product.\n\n"
    late = changed(changed(GOOD, returns, ""), "    As NumPy's", f"{returns}    As NumPy's")
    assert faults(late)[0].startswith("sections are not in the order Args")


def test_errors_of_private_functions_count_and_those_of_public_ones_do_not(faults):
    call = "    _first(n)\n    return x * n\n\n"
    helper = "def _first(n):\n    _second(n)\ndef _second(n):\n    raise OSError\n"
    source = changed(GOOD, "    return x * n\n", call + helper)
    assert faults(source) == ["Raises lacks OSError"]
    assert faults(source.replace("_first", "first")) == []


def test_errors_made_by_a_function_count(faults):
    call = "    raise _error(n)\n\ndef _error(n) -> IndexError:\n    return IndexError()\n"
    assert faults(changed(GOOD, "    return x * n\n", call)) == ["Raises lacks IndexError"]


def test_errors_of_shared_helpers_count(faults):
    source = changed(GOOD, "    return x * n\n", "    return x * integer(n, 'public', 'n')\n")
    assert faults(source) == ["Raises lacks TypeError"]


@pytest.mark.parametrize("caught", ["KeyError", "(OSError, KeyError)", "Exception"])
def test_errors_that_are_caught_do_not_count(faults, caught):
    body = (
        f"    try:\n        raise KeyError\n    except {caught}:\n        pass\n    return x * n\n"
    )
    assert faults(changed(GOOD, "    return x * n\n", body)) == []


def test_errors_that_another_handler_would_catch_count(faults):
    body = "    try:\n        raise KeyError\n    except OSError:\n        pass\n    return x * n\n"
    assert faults(changed(GOOD, "    return x * n\n", body)) == ["Raises lacks KeyError"]


def test_a_base_class_stands_for_its_errors(faults):
    assert faults(changed(GOOD, "raise ValueError", "raise UnicodeDecodeError")) == []


def test_a_function_that_only_refuses_needs_its_errors_alone(faults):
    refused = '''
        from typing import NoReturn
        def public(x: float) -> NoReturn:
            """Refuse.

            Raises:
                TypeError: always.
            """
            raise TypeError
    '''
    assert faults(refused) == []
    assert faults(changed(refused, "raise TypeError", "raise OSError")) == ["Raises lacks OSError"]


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("        n: how many.\n", "", "Args lacks n"),
        ("        ValueError: ``n`` is negative.\n", "", "Raises lacks ValueError"),
        ("n: int) -> None", "n) -> None", "no annotation of n"),
        ("    >>> 1 + 1\n    2\n", "", "has no example"),
        ("Twice as many.", "Twice as many", "does not begin with one sentence on one line"),
        ("            by: how many more.\n", "", "Args lacks by"),
        ("            text: the number, in digits.\n", "", "Args lacks text"),
        ("            The sum.\n", "", "has no Returns"),
        ("text: str", "text", "no annotation of text"),
    ],
)
def test_classes_and_their_methods(faults, old, new, fault):
    (only,) = faults(changed(CLASS, old, new))
    assert only.startswith(fault)


def test_an_override_has_its_base_classs_meaning(faults):
    text = "Another.\n\n    Args:\n        n: how many.\n\n    >>> 1\n    1\n    "
    inner = f'class Inner(public):\n    """{text}"""\n'
    same = inner + '    def more(self, by):\n        """Add twice."""\n        return by\n'
    other = changed(same, "by):", "by, twice):")
    assert faults(CLASS + same, "Inner") == []
    assert faults(CLASS + other, "Inner") == [
        "Args lacks by, twice",
        "no annotation of by, twice",
        "no annotation of the result",
    ]


RECORD = '''
from typing import NamedTuple
class public(NamedTuple):
    """``x``, and more."""

    x: int
    y: int
    """Another number."""
'''


def test_fields_are_described_somewhere(faults):
    assert faults(RECORD) == []
    assert faults(changed(RECORD, "``x``", "One")) == ["Args lacks x"]
    assert faults(changed(RECORD, '    """Another number."""\n', "")) == ["Args lacks y"]


def test_classes_that_users_do_not_make_need_no_arguments(faults, monkeypatch):
    bare = changed(
        changed(CLASS, "    Args:\n        n: how many.\n\n", ""), "    >>> 1 + 1\n    2\n", ""
    )
    assert faults(bare) == ["Args lacks n", "has no example"]
    monkeypatch.setitem(docstrings.NOT_MADE_BY_USERS, "public", "another function")
    assert faults(bare) == []


def test_it_ends_with_1_where_something_is_wrong(monkeypatch, capsys):
    fault = docstrings.Fault(docstrings.SOURCES / "x.py", 3, "x.public", "has no example")
    monkeypatch.setattr(docstrings, "public_names", lambda: [("x.public", None)] * 2)
    monkeypatch.setattr(docstrings, "faults_of", lambda name, value: [])
    assert docstrings.main() == 0
    monkeypatch.setattr(docstrings, "faults_of", lambda name, value: [fault])
    assert docstrings.main() == 1
    assert capsys.readouterr().out == f"docstrings: 0 faults\n{fault}\ndocstrings: 1 faults\n"


def test_the_walk_comes_to_all_namespaces():
    names = dict(docstrings.public_names())
    assert {
        "stretto.jit",
        "stretto.linalg.svd",
        "stretto.scipy.stats.gaussian_kde",
        "stretto.nn.functional.prelu",
        "stretto.ensemble.layers.PackedLinear",
        "stretto.tree.register_dataclass",
        "stretto.laws.check",
        "stretto.laws.Law",
    } <= set(names)
    placed = [name for name, value in names.items() if docstrings.place_of(value) is not None]
    assert len(placed) > 1400
    assert set(docstrings.NOT_MADE_BY_USERS) <= set(names)
