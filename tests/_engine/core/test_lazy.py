"""What is loaded when first used."""

import sys
import types

import pytest

from stretto._engine.core.lazy import LazyMethod, LazyModule, names_on_demand


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `shapes` with the modules `circles` and `squares`, of which nothing is loaded."""
    home = tmp_path / "shapes"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "circles.py").write_text("def circle(self=None):\n    return ('circle', self)\n")
    (home / "squares.py").write_text("side = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import shapes  # noqa: PLC0415

    shapes.__getattr__, shapes.__dir__ = names_on_demand(
        "shapes", {"shapes": "squares", "shapes.circles": "circle"}
    )
    yield shapes
    for name in [name for name in sys.modules if name.split(".")[0] == "shapes"]:
        del sys.modules[name]


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


def test_dir_shows_modules_that_all_names(package):
    package.__all__ = ["circles"]
    assert "circles" in dir(package)


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


def test_names_that_are_not_there_say_why(package):
    get, names = names_on_demand("shapes", {"shapes": "squares"}, {"cube sphere": "it is flat"})
    assert get("squares").side == 2 and "cube" not in names()
    for name in ("cube", "sphere"):
        with pytest.raises(
            AttributeError, match=f"module 'shapes' has no attribute '{name}': it is flat"
        ):
            get(name)
    with pytest.raises(AttributeError, match=r"no attribute 'cone'$"):
        get("cone")
