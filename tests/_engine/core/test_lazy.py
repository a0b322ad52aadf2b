"""What is loaded when first used."""

import builtins
import importlib
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import stretto.nn.init
from stretto._engine.core import lazy
from stretto._engine.core.lazy import LazyMethod, LazyModule, exports, shown

INIT = """
from stretto._engine.core.lazy import exports
from os.path import join as join

exports(
    __name__,
    '.: squares .circles: circle ring shapes.colours: red',
)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `shapes` with three modules, of which nothing is loaded."""
    home = tmp_path / "shapes"
    home.mkdir()
    (home / "__init__.py").write_text(INIT)
    (home / "circles.py").write_text(
        "import shapes\ndef circle(self=None):\n    return ('circle', self)\nring = 'o'\n"
    )
    (home / "squares.py").write_text("side = 2\n")
    (home / "colours.py").write_text("__all__ = ['red']\nred = 'red'\nblue = 'blue'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("shapes")
    for name in [name for name in sys.modules if name.split(".")[0] == "shapes"]:
        del sys.modules[name]


def test_what_tools_ask_of_any_object_imports_nothing():
    module = LazyModule("stretto_of_another_name")
    for name in ("__wrapped__", "__array__", "__len__", "__path__"):
        assert not hasattr(module, name)
    with pytest.raises(ModuleNotFoundError, match="stretto_of_another_name"):
        module.anything  # noqa: B018


def test_names_are_loaded_when_first_used(package):
    assert "circle" not in vars(package)
    assert "shapes.circles" not in sys.modules
    assert package.circle() == ("circle", None)
    assert vars(package)["circle"] is sys.modules["shapes.circles"].circle
    assert "shapes.squares" not in sys.modules


def test_modules_of_the_package_itself(package):
    assert isinstance(package.squares, types.ModuleType)
    assert package.squares.side == 2


def test_other_names_are_missing(package):
    with pytest.raises(AttributeError, match="module 'shapes' has no attribute 'circel'") as error:
        package.circel  # noqa: B018
    assert (error.value.name, error.value.obj) == ("circel", package)


def test_dir_shows_what_can_be_had_and_not_where_it_comes_from(package):
    package.ready = 1
    before = dir(package)
    assert {"circle", "squares", "ready", "__doc__"} <= set(before)
    assert not {"circles", "__getattr__", "__dir__"} & set(before)
    assert package.circle and package.squares
    assert dir(package) == before


def test_all_has_what_is_imported(package):
    assert "shapes.colours" not in sys.modules
    assert package.__all__ == ["circle", "join", "red", "ring", "squares"]
    taken = {}
    exec("from shapes import *", taken)
    assert {*package.__all__} == {*taken} - {"__builtins__"}
    assert (taken["ring"], taken["red"]) == ("o", "red")


def test_a_name_loads_its_own_module_alone(package):
    assert package.ring == "o"
    assert "shapes.colours" not in sys.modules
    assert package.red == "red"
    with pytest.raises(AttributeError, match="no attribute 'blue'"):
        package.blue  # noqa: B018


def test_private_modules_are_loaded_when_asked_for_and_not_shown(package):
    assert "shapes.colours" not in sys.modules
    assert package.colours.blue == "blue"
    assert "colours" not in dir(package) and "colours" not in package.__all__
    with pytest.raises(AttributeError, match="no attribute '_colours'"):
        package._colours  # noqa: B018


def test_an_error_inside_a_module_is_not_hidden(package):
    (Path(package.__path__[0]) / "needy.py").write_text("import absent_package\n")
    with pytest.raises(ModuleNotFoundError, match="No module named 'absent_package'"):
        package.needy  # noqa: B018


def test_what_is_loaded_already_stays():
    sys.modules["made"] = module = types.ModuleType("made")
    module.path = "loaded"
    try:
        exports("made", "os: path sep")
    finally:
        del sys.modules["made"]
    assert (module.path, module.sep, module.__all__) == ("loaded", "/", ["path", "sep"])


def test_a_module_shows_what_its_all_says():
    sys.modules["made"] = module = types.ModuleType("made")
    module.__all__, module.here, module.helper = ["here"], 1, 2
    try:
        exports("made")
    finally:
        del sys.modules["made"]
    assert dir(module) == ["here"] and module.helper == 2
    with pytest.raises(AttributeError, match="module 'made' has no attribute 'there'"):
        module.there  # noqa: B018


def test_public_values_that_are_there_are_guarded(monkeypatch):
    """Not modules, which have their own, nor what is private or is a tool of the module's own."""
    guarded = []
    monkeypatch.setattr(lazy, "guard", lambda value: (guarded.append(value), value)[1])
    module = types.ModuleType("made")
    module.here, module._private, module.inside, module.TYPE_CHECKING = 1, 2, types, False
    monkeypatch.setitem(sys.modules, "made", module)
    exports("made", "os: sep")
    assert [value for value in guarded if isinstance(value, (int, str))] == [1]
    assert types not in guarded and module.__getattr__ in guarded
    del guarded[:]
    assert module.sep == "/" and guarded == ["/"]


def test_packages_that_are_loaded_at_once_do_not_disturb_each_other(tmp_path, monkeypatch):
    names = [f"alike{i}" for i in range(8)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(INIT.replace("shapes", name))
        (tmp_path / name / "circles.py").write_text(f"circle = ring = {name!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ordinary = builtins.__import__
    try:
        with ThreadPoolExecutor(8) as pool:
            loaded = [*pool.map(importlib.import_module, names)]
        assert [package.ring for package in loaded] == names
    finally:
        for name in [name for name in sys.modules if name.startswith("alike")]:
            del sys.modules[name]
    assert builtins.__import__ is ordinary


def test_a_module_inside_another(package):
    circles = LazyModule("shapes.circles")
    assert "shapes.circles" not in sys.modules
    assert circles.circle() == ("circle", None)
    with pytest.raises(AttributeError, match="corner"):
        circles.corner  # noqa: B018


def test_a_method_becomes_the_function(package):
    class Drawing:
        circle = LazyMethod("shapes.circles", "circle")
        ring = LazyMethod("shapes.circles", "circle")

    assert "shapes.circles" not in sys.modules
    drawing = Drawing()
    assert drawing.circle() == ("circle", drawing)
    assert Drawing.ring is Drawing.circle is vars(Drawing)["circle"] is package.circle


def test_a_plain_module_says_what_to_write():
    with pytest.raises(AttributeError, match=r"'ones_': use `model\.weight = nn\.init\.ones\("):
        stretto.nn.init.ones_  # noqa: B018
    with pytest.raises(AttributeError, match=r"'stretto\.nn\.init' has no attribute 'twos'$"):
        stretto.nn.init.twos  # noqa: B018


def test_a_class_is_shown_by_a_card_of_another_module(package):
    (Path(package.__path__[0]) / "cards.py").write_text(
        "from stretto._engine.core.cards import Card\n"
        "def card_of(x): return Card(f'<{x.name}>')\n"
        "def text_of(x): return f'Drawing {x.name}'\n"
    )

    @shown("shapes.cards", "card_of", "text_of")
    class Drawing:
        name = "ring"

    @shown("shapes.cards", "card_of")
    class Plain(Drawing):
        __repr__ = object.__repr__

    assert "shapes.cards" not in sys.modules
    assert repr(Drawing()) == "Drawing ring" and repr(Plain()).startswith("<")
    assert "&lt;ring&gt;" in Drawing()._repr_html_()
    assert Drawing().__rich__().label.plain == "<ring>"


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    for name, extra in (("needy", "absent_package"), ("needier", "another")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(
            "from stretto._engine.core.lazy import exports\n"
            f"exports(__name__, '.inside: x', extra={extra!r})\n"
        )
        (tmp_path / name / "inside.py").write_text("import absent_package\nx = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = r"this needs the package absent_package: pip install 'stretto\[absent_package\]'"
    try:
        for attribute in ("x", "inside"):
            with pytest.raises(ModuleNotFoundError, match=words):
                getattr(importlib.import_module("needy"), attribute)
            with pytest.raises(ModuleNotFoundError, match="No module named 'absent_package'"):
                getattr(importlib.import_module("needier"), attribute)
    finally:
        del sys.modules["needy"], sys.modules["needier"]
