"""What changed leads to its tests: by mirrors, and by names through what packages export."""

import subprocess
import textwrap

import pytest

from tests import changed

FILES = {
    "src/stretto/__init__.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from stretto.a import f as f
            from stretto import numpy as numpy
    """,
    "src/stretto/a.py": "from stretto._b import g\ndef f(): return g()",
    "src/stretto/_b.py": "def g(): pass",
    "src/stretto/c.py": 'lazy = LazyModule("stretto._b")',
    "src/stretto/numpy/__init__.py": "from stretto.numpy.d import *",
    "src/stretto/numpy/d.py": "def h(): pass\nif True:\n    i: int = 1",
    "src/stretto/numpy/e.py": "import stretto.numpy as snp\nsnp.h()",
    "src/stretto/_native.c": "",
    "tests/test_a.py": "import stretto as st\nst.f()",
    "tests/test_b.py": "",
    "tests/test_c.py": "import stretto as st",
    "tests/helper.py": "import stretto.numpy as snp\nsnp.h(1).shape",
    "tests/test_helped.py": "from tests import helper\nhelper.x()",
    "tests/numpy/test_d.py": "",
    "tests/numpy/test_e.py": "from stretto.numpy import i",
    "tests/_engine/native/test_native.py": "",
    "docs/page.md": "",
}


@pytest.fixture
def root(tmp_path):
    """A package in which names are exported, imported and used in each way."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


@pytest.fixture
def sources(root):
    """The parsed package."""
    return changed.Sources(root)


def test_names_are_followed_to_where_they_are_defined(sources):
    assert sources.home("stretto.f") == "stretto.a"
    assert sources.home("stretto.numpy.h.shape") == "stretto.numpy.d"
    assert sources.home("stretto.numpy.i") == "stretto.numpy.d"
    assert sources.home("stretto.nothing") == "stretto"
    assert sources.home("numpy.sin") is None


def test_what_a_module_uses(sources):
    assert sources.uses["stretto.a"] == {"stretto._b"}
    assert sources.uses["stretto.c"] == {"stretto._b"}
    assert "stretto.a" not in sources.uses["tests.test_c"]
    assert sources.around(["stretto._b"], 1) == ["stretto._b", "stretto.a", "stretto.c"]
    assert sources.around(["stretto._b"], 0) == ["stretto._b"]


def test_the_tests_of_a_module_are_its_mirror_and_its_users(sources):
    assert changed.tests_of(sources, "stretto._b") == ["tests/test_b.py"]
    assert changed.tests_of(sources, "stretto.a") == ["tests/test_a.py"]
    assert changed.tests_of(sources, "stretto.numpy.d") == [
        "tests/numpy/test_d.py",
        "tests/numpy/test_e.py",
        "tests/test_helped.py",
    ]


@pytest.mark.parametrize(
    "path, tests",
    [
        (
            "src/stretto/_b.py",
            ["tests/test_b.py", "src/stretto/_b.py", "tests/test_a.py", "tests/test_c.py"],
        ),
        ("tests/helper.py", ["tests/test_helped.py"]),
        ("tests/test_b.py", ["tests/test_b.py"]),
        ("docs/page.md", ["docs/page.md"]),
        ("docs/gone.md", []),
        ("src/stretto/gone.py", []),
        ("src/stretto/_native.c", ["tests/_engine/native/test_native.py"]),
    ],
)
def test_what_runs_for_a_change(sources, path, tests):
    assert changed.tests_for(sources, [path]) == tests


def test_changes_are_those_since_the_branch_left_and_new_files(root):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    def at(*words):
        git("-C", str(root), *words)

    at("init", "-q", "-b", "main")
    at("add", ".")
    at("commit", "-q", "-m", "One")
    assert changed.changed("main", root) == []
    at("checkout", "-q", "-b", "other")
    (root / "docs" / "page.md").write_text("more")
    at("commit", "-q", "-a", "-m", "Two")
    (root / "tests" / "test_b.py").write_text("x = 1")
    (root / "new.py").write_text("")
    assert changed.changed("main", root) == ["docs/page.md", "new.py", "tests/test_b.py"]
    assert changed.changed("no-such-branch", root) == ["new.py", "tests/test_b.py"]


def test_here_a_function_leads_to_its_file():
    sources = changed.Sources()
    assert sources.home("stretto.vmap") == "stretto._engine.api.vectorize"
    assert sources.mirrors("stretto._engine.api.vectorize") == [
        "tests/_engine/api/test_vectorize.py",
        "tests/_engine/api/test_vectorize_loops.py",
    ]
    assert sources.mirrors("stretto._engine.native") == ["tests/_engine/native/test_native.py"]
