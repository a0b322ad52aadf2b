"""Draws the house, ``docs/images/house.svg``: which layer imports which, counted in the sources.

Run ``python tools/make_house.py``; a test fails while the picture shows something else. A row is a
folder that is a layer of the contracts that ``make lint`` checks, a column what it imports, a disc
how many of its modules do. Layers stand in their order, so everything lies below the diagonal.
"""

import pathlib
import re
import tomllib
from collections import Counter
from html import escape

import grimp

ROOT = pathlib.Path(__file__).parents[1]
TARGET = ROOT / "docs" / "images" / "house.svg"

CELL, MARGIN, HEAD, FOOT = 20, 130, 110, 46
RADII = ((1, 2.5), (3, 4.5), (10, 6.5), (30, 9.0))
"""From so many modules on, a disc of that radius: few steps, so that few changes draw it anew."""
ENGINE, PUBLIC = "#0072B2", "#D55E00"


def layers() -> list[str]:
    """Return the layers that are folders, the lowest first: the engine's, then the public ones."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    names = []
    for identifier in ("engine", "public"):
        (found,) = [
            contract
            for contract in settings["tool"]["importlinter"]["contracts"]
            if contract["id"] == identifier
        ]
        (container,) = found["containers"]
        names += [
            f"{container}.{name}"
            for layer in reversed(found["layers"])
            for name in re.findall(r"\w+", layer)
            if name != "_engine" and (ROOT / "src" / container.replace(".", "/") / name).is_dir()
        ]
    return names


def imports(names: list[str]) -> Counter[tuple[str, str]]:
    """Count, for each pair of layers, the modules of the first that import from the second."""
    graph = grimp.build_graph("stretto", cache_dir=None, exclude_type_checking_imports=True)

    def layer_of(module: str) -> str | None:
        return next((name for name in names if f"{module}.".startswith(f"{name}.")), None)

    pairs = {
        (module, layer_of(module), layer_of(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    return Counter(
        (importer, imported)
        for _, importer, imported in pairs
        if importer and imported and importer != imported
    )


def page() -> str:
    """Return the picture, as it would be drawn today."""
    names = layers()
    counts = imports(names)
    used = {name for pair in counts for name in pair}
    names = [name for name in names if name in used]
    columns = [name for name in names if any(imported == name for _, imported in counts)]
    width = MARGIN + CELL * len(columns) + 90
    height = HEAD + CELL * len(names) + FOOT
    shapes = []
    for row, name in enumerate(names):
        y = HEAD + CELL * row
        color = ENGINE if "._engine." in name else PUBLIC
        short = escape(name.rpartition(".")[2])
        if row % 2:
            shapes.append(f'<rect x="0" y="{y}" width="{width}" height="{CELL}" fill="#f4f4f4"/>')
        shapes.append(f'<text x="{MARGIN - 8}" y="{y + 14}" text-anchor="end">{short}</text>')
        for column, imported in enumerate(columns):
            count = counts[name, imported]
            if count:
                radius = max(radius for least, radius in RADII if count >= least)
                x = MARGIN + CELL * column + CELL // 2
                shapes.append(
                    f'<circle cx="{x}" cy="{y + CELL // 2}" r="{radius}" fill="{color}"/>'
                )
    for column, imported in enumerate(columns):
        x, y = MARGIN + CELL * column + 14, HEAD - 8
        short = escape(imported.rpartition(".")[2])
        shapes.append(f'<text x="{x}" y="{y}" transform="rotate(-60 {x} {y})">{short}</text>')
    x, y = MARGIN, height - FOOT // 2
    for least, radius in RADII:
        shapes.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="#666"/>')
        shapes.append(f'<text x="{x + 14}" y="{y + 4}">{least} or more</text>')
        x += 110
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">\n'
        "<title>Which layer, a row, imports which, a column</title>\n"
        f'<rect width="{width}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
