"""Writes the tables of layers in ``architecture.md``, from the contracts that ``make lint`` checks.

Run ``python tools/make_layers.py``; a test fails while the page says something else.
"""

import ast
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).parents[1]
TARGET = ROOT / "docs" / "architecture.md"


def layers(contract: str) -> list[pathlib.Path]:
    """The packages and modules of a contract, lowest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = [c for c in contracts if c["id"] == contract]
    (container,) = found["containers"]
    folder = ROOT / "src" / container.replace(".", "/")
    names = [name for layer in reversed(found["layers"]) for name in re.findall(r"\w+", layer)]
    return [folder / name for name in names]


def summary(path: pathlib.Path) -> str:
    """The first sentence of the docstring of a package or module."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text("utf-8")))
    assert text is not None
    sentence = text.partition("\n\n")[0].replace("\n", " ").replace("``", "`")
    sentence = re.sub(r"^`stretto\.\w+`: ", "", sentence)
    return sentence[0].upper() + sentence[1:]


def table(contract: str) -> str:
    """A row for each layer."""
    rows = [
        f"| `{path.name}{'/' if path.is_dir() else '.py'}` | {summary(path)} |"
        for path in layers(contract)
    ]
    return "\n".join(["| | what is there |", "| --- | --- |", *rows])


def page() -> str:
    """The page, with its tables as they would be written today."""
    text = TARGET.read_text("utf-8")
    for contract in ("engine", "public"):
        start, end = f"<!-- layers: {contract} -->\n", "<!-- end of layers -->"
        before, _, rest = text.partition(start)
        after = rest.partition(end)[2]
        text = f"{before}{start}{table(contract)}\n{end}{after}"
    return text


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
